-- What products and Thngs are called outside of the platform; one value may belong to several.
CREATE TABLE identifiers (
    account_id   TEXT NOT NULL REFERENCES accounts (id),
    kind         TEXT NOT NULL,
    key          TEXT NOT NULL,
    value        TEXT NOT NULL,
    resource_id  TEXT NOT NULL,
    PRIMARY KEY (account_id, kind, key, value, resource_id)
);
CREATE INDEX identifiers_resource ON identifiers (resource_id);

CREATE INDEX products_name ON products (account_id, name, created_at, seq);
CREATE INDEX thngs_name ON thngs (account_id, name, created_at, seq);

-- `doc` holds the members that no query goes by.
ALTER TABLE accounts ADD COLUMN doc TEXT NOT NULL DEFAULT '{}';
ALTER TABLE operators ADD COLUMN doc TEXT NOT NULL DEFAULT '{}';
