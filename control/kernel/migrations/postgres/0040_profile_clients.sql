-- Networks (16 bits of a hash) and languages of the sessions of a profile, in their order; null where they are not known.
ALTER TABLE scan_profiles ADD COLUMN clients BYTEA;
