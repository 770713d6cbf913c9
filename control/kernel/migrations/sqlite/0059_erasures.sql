-- Requests to erase personal data, which stay as receipts. `lease_until` is on the clock of the database; `fence` grows with
-- each worker that takes one.
CREATE TABLE erasures (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    account_id   TEXT    NOT NULL REFERENCES accounts (id),
    type         TEXT    NOT NULL,
    status       TEXT    NOT NULL,
    doc          TEXT    NOT NULL,
    created_at   BIGINT  NOT NULL,
    updated_at   BIGINT  NOT NULL,
    lease_until  BIGINT  NOT NULL DEFAULT 0,
    fence        BIGINT  NOT NULL DEFAULT 0
);
CREATE INDEX erasures_account ON erasures (account_id, created_at, seq);
CREATE INDEX erasures_open ON erasures (lease_until, seq) WHERE status <> 'COMPLETED';
