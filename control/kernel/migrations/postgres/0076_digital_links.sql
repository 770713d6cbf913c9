-- Whether paths of GS1 Digital Links are resolved on a domain.
ALTER TABLE short_domains ADD COLUMN digital_links BOOLEAN NOT NULL DEFAULT FALSE;

-- The typed links of redirections that are Digital Links; `seq` is that of the redirection, `platform_id` its product or Thng.
CREATE TABLE link_sets (
    seq          BIGINT PRIMARY KEY,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    platform_id  TEXT   NOT NULL,
    doc          JSONB  NOT NULL
);
CREATE INDEX link_sets_resource ON link_sets (account_id, platform_id);

-- GTINs that products had before: they still lead to them.
CREATE TABLE gtin_aliases (
    account_id  TEXT NOT NULL REFERENCES accounts (id),
    gtin        TEXT NOT NULL,
    product_id  TEXT NOT NULL,
    PRIMARY KEY (account_id, gtin)
);
CREATE INDEX gtin_aliases_product ON gtin_aliases (account_id, product_id);

-- Digital Links that are to be made or removed in steps: of all products of an account (an empty `product_id`), or of the Things
-- of a product. What comes behind the place, in the order of creation, is left.
CREATE TABLE digital_link_tasks (
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    product_id  TEXT   NOT NULL,
    after_at    BIGINT NOT NULL,
    after_seq   BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (account_id, product_id)
);
