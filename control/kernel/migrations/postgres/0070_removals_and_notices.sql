-- Workers hold removals under a lease, so that one that fails is in nobody's way.
ALTER TABLE removed_applications ADD COLUMN seq BIGINT GENERATED ALWAYS AS IDENTITY;
ALTER TABLE removed_applications ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
ALTER TABLE removed_applications ADD COLUMN failures BIGINT NOT NULL DEFAULT 0;
ALTER TABLE removed_applications ADD COLUMN lease_until BIGINT NOT NULL DEFAULT 0;
