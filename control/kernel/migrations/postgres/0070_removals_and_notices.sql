-- Workers hold removals under a lease, so that one that fails is in nobody's way.
ALTER TABLE removed_applications ADD COLUMN seq BIGINT GENERATED ALWAYS AS IDENTITY;
ALTER TABLE removed_applications ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
ALTER TABLE removed_applications ADD COLUMN failures BIGINT NOT NULL DEFAULT 0;
ALTER TABLE removed_applications ADD COLUMN lease_until BIGINT NOT NULL DEFAULT 0;

-- Entries of the audit trail that could not be read: they are in no chain, and the check of the trail names them.
CREATE TABLE audit_rejects (
    seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry TEXT NOT NULL,
    fault TEXT NOT NULL
);

-- Until when nobody else can prove a domain whose proof is lost, by the clock of the database.
ALTER TABLE domain_claims ADD COLUMN lost_until BIGINT;
