-- When a claim ends that is not proven. Those that were there before have a week from now on.
ALTER TABLE domain_claims ADD COLUMN ends_at BIGINT;
UPDATE domain_claims SET ends_at = CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT) + 604800000 WHERE state IN ('pending', 'refused');
CREATE INDEX domain_claims_ends ON domain_claims (ends_at) WHERE ends_at IS NOT NULL;
