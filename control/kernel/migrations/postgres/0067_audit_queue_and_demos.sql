-- Entries of the audit trail as the transaction of their change leaves them: one text each, without an index to keep. They go
-- from here into `audit_entries` with their number and hash, many at a time.
CREATE TABLE audit_queue (
    seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry TEXT NOT NULL
);

-- The server notes that a project is made for a demo when it is made. Those that are there are known by their custom field.
UPDATE projects SET doc = doc || '{"demo": true}'::jsonb
    WHERE jsonb_typeof(doc #> '{customFields,waymarkDemo,seed}') = 'number';
