-- When a claim ends that is not proven. Those that were there before have a week from now on.
ALTER TABLE domain_claims ADD COLUMN ends_at INTEGER;
UPDATE domain_claims SET ends_at = (unixepoch() * 1000) + 604800000 WHERE state IN ('pending', 'refused');
CREATE INDEX domain_claims_ends ON domain_claims (ends_at) WHERE ends_at IS NOT NULL;
