-- What rows are found by that has no column of its own, as texts `path=value`: tags, custom fields,
-- identifiers, scopes. One index serves them all. Rows of before are filled when the migrations have run.
ALTER TABLE products ADD COLUMN facets TEXT[];
ALTER TABLE thngs ADD COLUMN facets TEXT[];
ALTER TABLE actions ADD COLUMN facets TEXT[];
CREATE INDEX products_unfilled ON products (seq) WHERE facets IS NULL;
CREATE INDEX thngs_unfilled ON thngs (seq) WHERE facets IS NULL;
CREATE INDEX actions_unfilled ON actions (seq) WHERE facets IS NULL;

-- A common facet is found by walking the account in order, a rare one by this index: the statistics of
-- single facets tell which, so they reach further than those of other columns.
ALTER TABLE products ALTER COLUMN facets SET STATISTICS 1000;
ALTER TABLE thngs ALTER COLUMN facets SET STATISTICS 1000;
ALTER TABLE actions ALTER COLUMN facets SET STATISTICS 1000;
CREATE INDEX products_facets ON products USING GIN (facets);
CREATE INDEX thngs_facets ON thngs USING GIN (facets);
CREATE INDEX actions_facets ON actions USING GIN (facets);

-- The timestamp stands in the index of the order, so that rows of another time are passed over in it.
DROP INDEX actions_account;
CREATE INDEX actions_account ON actions (account_id, created_at, seq, timestamp);
CREATE INDEX actions_timestamp ON actions (account_id, timestamp, created_at, seq);
CREATE INDEX actions_thng_type ON actions (account_id, thng_id, type, created_at, seq) WHERE thng_id IS NOT NULL;
CREATE INDEX actions_product_type ON actions (account_id, product_id, type, created_at, seq)
    WHERE product_id IS NOT NULL;

-- Tombstones are in no list, and a million of them cost none anything.
DROP INDEX redirections_account;
DROP INDEX redirections_resource;
CREATE INDEX redirections_account ON redirections (account_id, created_at, seq) WHERE deleted_rev IS NULL;
CREATE INDEX redirections_domain ON redirections (account_id, domain, created_at, seq) WHERE deleted_rev IS NULL;
CREATE INDEX redirections_resource ON redirections (account_id, platform_id, created_at, seq)
    WHERE deleted_rev IS NULL;
