-- Postgres compresses the bodies of events in another way from here on; SQLite compresses nothing.
SELECT 1;
