-- The scan that wrote the verdict of an item, with the version of the rules, so that the item can be judged again; and the
-- greatest points with the commissioning, the version of the rules and the scan that each half of them came by. Both are
-- null, or do not fit the columns beside them, where an older release wrote: then these columns tell.
ALTER TABLE item_standings ADD COLUMN standing TEXT;
ALTER TABLE item_standings ADD COLUMN peak TEXT;
-- Outdated profiles are found without a look at the others.
CREATE INDEX scan_profiles_rules ON scan_profiles (rules_version, thng_id);
