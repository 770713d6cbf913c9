-- :rows actions of two accounts, loaded without indexes, which are made afterwards as the migrations say.
\set ON_ERROR_STOP on
DROP SCHEMA IF EXISTS paging CASCADE;
CREATE SCHEMA paging;
SET search_path = paging;
\i control/kernel/migrations/postgres/0001_start.sql
\i control/kernel/migrations/postgres/0002_resources.sql
\i control/kernel/migrations/postgres/0003_thngs_by_product.sql
\i control/kernel/migrations/postgres/0004_lists.sql
INSERT INTO accounts (id, name, enterprise, created_at, updated_at) VALUES ('A', 'a', true, 1, 1), ('B', 'b', true, 1, 1);
CREATE TEMP TABLE defs AS SELECT indexname, indexdef FROM pg_indexes
    WHERE schemaname = 'paging' AND tablename = 'actions' AND indexname NOT LIKE '%key';
SELECT format('DROP INDEX paging.%I', indexname) FROM defs \gexec
SET work_mem = '256MB';
SET maintenance_work_mem = '1GB';
SET synchronous_commit = off;
INSERT INTO actions (id, account_id, type, thng_id, product_id, timestamp, created_at, doc, facets)
SELECT lpad(n::text, 24, '0'), CASE WHEN n % 50 = 0 THEN 'B' ELSE 'A' END,
    CASE WHEN n % 5000 = 7 THEN '_rare' WHEN n % 20 = 3 THEN 'checkins' WHEN n % 5 = 1 THEN 'scans'
        ELSE 'implicitScans' END,
    'T' || (n * 7919::bigint % 100000), 'P' || (n * 104729::bigint % 100),
    1700000000000 + n * 10 - (n * 31::bigint % 3600000), 1700000000000 + n * 10,
    jsonb_build_object('tags', jsonb_build_array('t' || n % 1000),
        'customFields', jsonb_build_object('color', n % 5, 'shortId', n % 100000),
        'context', jsonb_build_object('city', 'C' || n % 500, 'countryCode', country)),
    ARRAY['context.city=C' || n % 500, 'context.countryCode=' || country, 'customFields.color=' || n % 5,
        'customFields.shortId=' || n % 100000, 'identifiers.sn=S' || n, 'tags=t' || n % 1000]
        || CASE WHEN n % 2 = 0 THEN ARRAY['tags=even'] ELSE '{}' END
FROM (SELECT n::bigint, CASE WHEN n % 50000 = 9 THEN 'MC' WHEN n % 3 = 0 THEN 'GB' ELSE 'US' END AS country
    FROM generate_series(1, :rows) n) rows;
SELECT indexdef FROM defs \gexec
VACUUM ANALYZE actions;
