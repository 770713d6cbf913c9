-- A batch of values is one event of some 60 KB: pglz takes 0.55 ms for it, lz4 0.2. A server without lz4 stays as it is,
-- and so does one whose table is in use for longer than writes may wait.
DO $$ BEGIN
    SET LOCAL lock_timeout = '2s';
    EXECUTE 'ALTER TABLE events ALTER COLUMN body SET COMPRESSION lz4';
EXCEPTION WHEN feature_not_supported OR syntax_error OR lock_not_available THEN NULL;
END $$;
