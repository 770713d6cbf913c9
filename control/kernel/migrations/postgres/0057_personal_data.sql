-- How much of the people behind scans and other actions an account keeps. Accounts that are here keep what they kept; new ones
-- keep less unless they say otherwise.
ALTER TABLE accounts ADD COLUMN personal_data TEXT NOT NULL DEFAULT 'full';
ALTER TABLE accounts ALTER COLUMN personal_data SET DEFAULT 'truncated';
