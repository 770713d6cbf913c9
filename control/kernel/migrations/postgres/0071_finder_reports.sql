-- What finders of suspected copies wrote. The id is that of the token of the form, so a token is good for one report.
CREATE TABLE finder_reports (
    id          TEXT   NOT NULL PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    case_id     TEXT   NOT NULL,
    thng_id     TEXT   NOT NULL,
    short_url   TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    mail        TEXT,
    created_at  BIGINT NOT NULL
);
CREATE INDEX finder_reports_case ON finder_reports (case_id, created_at);
CREATE INDEX finder_reports_account ON finder_reports (account_id, created_at);
CREATE INDEX finder_reports_thng ON finder_reports (account_id, thng_id, created_at);
