-- Photos of reports: where their bytes are. A row goes with its report, and its blob with the row.
CREATE TABLE report_photos (
    report_id   TEXT   NOT NULL PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    blob        TEXT   NOT NULL,
    media_type  TEXT   NOT NULL,
    size_bytes  BIGINT NOT NULL
);
CREATE INDEX report_photos_account ON report_photos (account_id);
