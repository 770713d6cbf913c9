-- Entries of the audit trail as the transaction of their change leaves them: one text each, without an index to keep. They go
-- from here into `audit_entries` with their number and hash, many at a time.
CREATE TABLE audit_queue (
    seq   INTEGER PRIMARY KEY,
    entry TEXT NOT NULL
);
