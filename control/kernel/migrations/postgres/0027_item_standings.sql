-- What does not fade of an item's assessments: when the scan happened that wrote the verdict of its Thng, and the
-- greatest points of a duplicate with the scan that brought them.
CREATE TABLE item_standings (
    thng_id     TEXT   NOT NULL PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    scanned_at  BIGINT,
    points      BIGINT NOT NULL,
    level       TEXT   NOT NULL,
    scan_id     TEXT   NOT NULL,
    points_at   BIGINT NOT NULL
);
