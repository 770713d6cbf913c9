-- The audit trail of the platform itself has an id that no account has. A constraint goes only with its table.
CREATE TABLE audit_entries_kept (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  TEXT   NOT NULL,
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
    hash        BLOB
);
INSERT INTO audit_entries_kept (seq, account_id, at, actor_kind, actor_id, key_id, network, request_id, operation, resource,
    resource_id, before, after, number, hash)
    SELECT seq, account_id, at, actor_kind, actor_id, key_id, network, request_id, operation, resource, resource_id, before,
    after, number, hash FROM audit_entries ORDER BY seq;
DROP TABLE audit_entries;
ALTER TABLE audit_entries_kept RENAME TO audit_entries;
CREATE INDEX audit_entries_unchained ON audit_entries (seq) WHERE number IS NULL;
CREATE INDEX audit_entries_account ON audit_entries (account_id, at, seq);
CREATE INDEX audit_entries_resource ON audit_entries (account_id, resource_id, at, seq);
CREATE UNIQUE INDEX audit_entries_chain ON audit_entries (account_id, number) WHERE number IS NOT NULL;

CREATE TABLE audit_chains_kept (
    account_id    TEXT   NOT NULL PRIMARY KEY,
    last_number   BIGINT NOT NULL,
    last_hash     BLOB   NOT NULL,
    base_number   BIGINT NOT NULL,
    base_hash     BLOB   NOT NULL,
    seal          BLOB   NOT NULL
);
INSERT INTO audit_chains_kept (account_id, last_number, last_hash, base_number, base_hash, seal)
    SELECT account_id, last_number, last_hash, base_number, base_hash, seal FROM audit_chains;
DROP TABLE audit_chains;
ALTER TABLE audit_chains_kept RENAME TO audit_chains;
