-- What users of applications may do in an account: `own` or `open`.
ALTER TABLE accounts ADD COLUMN user_rights TEXT NOT NULL DEFAULT 'own';
