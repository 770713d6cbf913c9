-- What is to be told of new actions, in the order of their commits: `kind` is notification or reaction,
-- `actions` the ids of one account that were made together.
CREATE TABLE outbox (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    kind        TEXT   NOT NULL,
    actions     TEXT   NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX outbox_kind ON outbox (kind, seq);
CREATE INDEX outbox_age ON outbox (created_at);
