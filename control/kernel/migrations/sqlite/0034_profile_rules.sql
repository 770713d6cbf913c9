-- The version of the rules that made a profile; null where an older release made it: it is made again from the actions.
ALTER TABLE scan_profiles ADD COLUMN rules_version INTEGER;
