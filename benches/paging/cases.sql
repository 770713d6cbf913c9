-- The statements that lists of actions become (tests/it/store/snapshots), explained and timed.
SET search_path = paging;
CREATE TEMP TABLE cases (n serial, what text, condition text);
INSERT INTO cases (what, condition) VALUES
    ('all', 'true'),
    ('type, common', 'type = ''implicitScans'''),
    ('type, rare', 'type = ''_rare'''),
    ('thng', 'thng_id = ''T123'''),
    ('thng and type', 'thng_id = ''T123'' AND type = ''scans'''),
    ('product', 'product_id = ''P7'''),
    ('product and type', 'product_id = ''P7'' AND type = ''_rare'''),
    ('timestamp, newest', 'timestamp > (SELECT max(timestamp) - 60000 FROM actions)'),
    ('timestamp, oldest', format('timestamp < %s', (SELECT min(timestamp) + 4000000 FROM actions))),
    ('tags, common', 'facets @> ''{tags=even}'''),
    ('tags, rare', 'facets @> ''{tags=t17}'''),
    ('identifiers.*', 'facets @> ''{identifiers.sn=S4711}'''),
    ('context.countryCode, common', 'facets @> ''{context.countryCode=US}'''),
    ('context.countryCode, rare', 'facets @> ''{context.countryCode=MC}'''),
    ('customFields.*, common', 'facets @> ''{customFields.color=3}'''),
    ('customFields.*, rare', 'facets @> ''{customFields.shortId=4711}''');
-- Literals, so that each is planned as the product's unnamed statements are.
UPDATE cases SET condition = format('timestamp > %s', (SELECT max(timestamp) - 60000 FROM actions))
    WHERE what = 'timestamp, newest';

CREATE FUNCTION pg_temp.page(condition text, after text) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT t.seq, t.id, t.type, t.thng_id, t.product_id, t.timestamp, t.created_at, t.doc FROM actions t '
        'WHERE t.account_id = ''A'' AND (%s)%s ORDER BY t.created_at DESC, t.seq DESC LIMIT 31', condition, after) $$;

DO $$
DECLARE
    one record; sql text; line text; began timestamptz; times float8[]; deep text; which text; middle float8; first float8;
BEGIN
    -- Page 10,000 of 30 rows, or the last tenth of a smaller list.
    SELECT format(' AND (t.created_at, t.seq) < (%s, %s)', created_at, seq) INTO deep FROM (
        SELECT created_at, seq FROM actions WHERE account_id = 'A' ORDER BY created_at DESC, seq DESC
        OFFSET LEAST(300000, (SELECT count(*) * 9 / 10 FROM actions WHERE account_id = 'A')) LIMIT 1) d;
    FOR one IN SELECT * FROM cases ORDER BY n LOOP
        FOREACH which IN ARRAY ARRAY['', deep] LOOP
            sql := pg_temp.page(one.condition, which);
            times := '{}';
            FOR run IN 1..7 LOOP
                began := clock_timestamp();
                EXECUTE 'SELECT max(p.id || p.doc::text) FROM (' || sql || ') p';
                times := times || extract(epoch FROM clock_timestamp() - began)::float8 * 1000;
            END LOOP;
            SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) INTO middle FROM unnest(times) t;
            RAISE INFO '% | % | % ms', rpad(one.what, 28), CASE WHEN which = '' THEN 'page 1     ' ELSE 'page 10,000' END,
                round(middle::numeric, 2);
            FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || sql LOOP
                IF line ~ 'Scan|Sort' THEN RAISE INFO '      %', btrim(line, ' ->'); END IF;
                IF line ~ 'Seq Scan' THEN RAISE WARNING '% uses no index', one.what; END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;
