-- What subscribers hear of: a row for each write, in the transaction of the write; kept for minutes.
CREATE TABLE events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    at          BIGINT NOT NULL,
    account_id  TEXT   NOT NULL,
    kind        TEXT   NOT NULL,
    origin      TEXT,
    body        TEXT   NOT NULL
);
