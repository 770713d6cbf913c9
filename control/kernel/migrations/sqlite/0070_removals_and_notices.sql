-- Workers hold removals under a lease, so that one that fails is in nobody's way.
CREATE TABLE removals (
    seq         INTEGER PRIMARY KEY,
    app_id      TEXT    NOT NULL UNIQUE,
    account_id  TEXT    NOT NULL REFERENCES accounts (id),
    users       BIGINT  NOT NULL,
    created_at  BIGINT  NOT NULL,
    fence       INTEGER NOT NULL DEFAULT 0,
    failures    INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0
);
INSERT INTO removals (app_id, account_id, users, created_at)
    SELECT app_id, account_id, users, created_at FROM removed_applications ORDER BY app_id;
DROP TABLE removed_applications;
ALTER TABLE removals RENAME TO removed_applications;

-- Entries of the audit trail that could not be read: they are in no chain, and the check of the trail names them.
CREATE TABLE audit_rejects (
    seq   INTEGER PRIMARY KEY,
    entry TEXT NOT NULL,
    fault TEXT NOT NULL
);

-- Until when nobody else can prove a domain whose proof is lost, by the clock of the database.
ALTER TABLE domain_claims ADD COLUMN lost_until BIGINT;
