-- Identifiers that only one resource may have: the serial of a Thng within its product, the GTIN of a product in its
-- account. Each is claimed here by the write that gives it. What had one before has no row until it changes: two with
-- the same stay as they are, and no third joins them.
CREATE TABLE unique_identifiers (
    account_id   TEXT NOT NULL REFERENCES accounts (id),
    kind         TEXT NOT NULL,
    name         TEXT NOT NULL,
    resource_id  TEXT NOT NULL UNIQUE,
    PRIMARY KEY (account_id, kind, name)
);
