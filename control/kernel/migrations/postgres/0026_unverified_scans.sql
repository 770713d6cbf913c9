-- The last sessions that were reported by public keys, in the form of the profile; null where the profile was made
-- before scans had a source: it is made again from the actions.
ALTER TABLE scan_profiles ADD COLUMN unverified BYTEA;
