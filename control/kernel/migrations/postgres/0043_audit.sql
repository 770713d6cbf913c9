-- Who changed what: an entry is added by the transaction of the change. It gets its place in the chain of its account
-- (`number`, `hash`) soon after, so that requests of one account do not wait for each other.
CREATE TABLE audit_entries (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    at          BIGINT NOT NULL,
    actor_kind  TEXT   NOT NULL,
    actor_id    TEXT,
    key_id      TEXT,
    network     TEXT,
    request_id  TEXT,
    operation   TEXT   NOT NULL,
    resource    TEXT   NOT NULL,
    resource_id TEXT   NOT NULL,
    before      TEXT,
    after       TEXT,
    number      BIGINT,
    hash        BYTEA
);
CREATE INDEX audit_entries_unchained ON audit_entries (seq) WHERE number IS NULL;
CREATE INDEX audit_entries_account ON audit_entries (account_id, at, seq);
CREATE INDEX audit_entries_resource ON audit_entries (account_id, resource_id, at, seq);
CREATE UNIQUE INDEX audit_entries_chain ON audit_entries (account_id, number) WHERE number IS NOT NULL;

-- The chain of an account: its last entry, and the one before its first, which the retention removed. The seal is a
-- keyed hash of both, so that nobody without the key cuts off either end.
CREATE TABLE audit_chains (
    account_id    TEXT   NOT NULL PRIMARY KEY REFERENCES accounts (id),
    last_number   BIGINT NOT NULL,
    last_hash     BYTEA  NOT NULL,
    base_number   BIGINT NOT NULL,
    base_hash     BYTEA  NOT NULL,
    seal          BYTEA  NOT NULL
);
