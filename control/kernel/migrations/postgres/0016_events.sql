-- What subscribers hear of: a row for each write, in the transaction of the write; kept for minutes.
-- Numbers are given when a row is written and seen when it is committed: readers watch for the gaps.
CREATE TABLE events (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          BIGINT NOT NULL,
    account_id  TEXT   NOT NULL,
    kind        TEXT   NOT NULL,
    origin      TEXT,
    body        TEXT   NOT NULL
);
