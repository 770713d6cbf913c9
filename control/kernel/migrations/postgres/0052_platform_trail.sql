-- The audit trail of the platform itself has an id that no account has.
ALTER TABLE audit_entries DROP CONSTRAINT audit_entries_account_id_fkey;
ALTER TABLE audit_chains DROP CONSTRAINT audit_chains_account_id_fkey;
