-- After how many days what is left of people in scans and other actions of an account is cut; nothing is never. How far that
-- has come is one row of `erasures` for each account, of the type `age`, which is begun again each day.
ALTER TABLE accounts ADD COLUMN personal_data_days BIGINT;
CREATE UNIQUE INDEX erasures_age ON erasures (account_id) WHERE type = 'age';
