-- Tenants, their domains, people and keys.
CREATE TABLE accounts (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    name        TEXT    NOT NULL,
    enterprise  BOOLEAN NOT NULL,
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL
);

CREATE TABLE short_domains (
    host            TEXT    PRIMARY KEY,
    account_id      TEXT    NOT NULL REFERENCES accounts (id),
    position        BIGINT  NOT NULL,
    scheme          TEXT    NOT NULL,
    case_sensitive  BOOLEAN NOT NULL
);
CREATE INDEX short_domains_account ON short_domains (account_id, position);

CREATE TABLE operators (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    email       TEXT   NOT NULL,
    first_name  TEXT   NOT NULL,
    last_name   TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX operators_account ON operators (account_id, created_at, seq);

-- The hash is SHA-256 of the key; the key itself is never stored.
CREATE TABLE api_keys (
    hash        BLOB   PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    kind        TEXT   NOT NULL,
    actor_id    TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    revoked_at  BIGINT
);
CREATE INDEX api_keys_actor ON api_keys (account_id, actor_id);

-- Keys that all replicas share: page tokens, action ids of scans.
CREATE TABLE secrets (
    name        TEXT   PRIMARY KEY,
    value       BLOB   NOT NULL,
    created_at  BIGINT NOT NULL
);

-- `doc` holds the members that no query goes by.
CREATE TABLE products (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    name        TEXT   NOT NULL,
    doc         TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX products_account ON products (account_id, created_at, seq);

CREATE TABLE thngs (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    name        TEXT   NOT NULL,
    product_id  TEXT,
    doc         TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX thngs_account ON thngs (account_id, created_at, seq);

-- A deleted row stays as a tombstone, so that a short id is never given out again.
CREATE TABLE redirections (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    domain          TEXT    NOT NULL REFERENCES short_domains (host),
    folded          TEXT    NOT NULL,
    short_id        TEXT    NOT NULL,
    account_id      TEXT    NOT NULL REFERENCES accounts (id),
    type            TEXT    NOT NULL,
    platform_id     TEXT    NOT NULL,
    thng_id         TEXT,
    product_id      TEXT,
    target          TEXT    NOT NULL,
    forward_query   BOOLEAN NOT NULL,
    scopes          TEXT    NOT NULL,
    hits            BIGINT  NOT NULL,
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL,
    rev             BIGINT  NOT NULL,
    deleted_rev     BIGINT,
    CONSTRAINT redirections_short_id UNIQUE (domain, folded)
);
CREATE INDEX redirections_account ON redirections (account_id, created_at, seq);
CREATE INDEX redirections_resource ON redirections (account_id, platform_id, created_at, seq);

-- One order of all changes that edges hear of: see publish.
CREATE TABLE log_head (
    id         BIGINT PRIMARY KEY CHECK (id = 1),
    epoch      TEXT   NOT NULL,
    bound_to   TEXT   NOT NULL,
    head       BIGINT NOT NULL,
    compacted  BIGINT NOT NULL
);

CREATE TABLE redirect_log (
    rev     INTEGER PRIMARY KEY,
    at      BIGINT NOT NULL,
    change  TEXT   NOT NULL
);

CREATE TABLE actions (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    type        TEXT   NOT NULL,
    thng_id     TEXT,
    product_id  TEXT,
    timestamp   BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    doc         TEXT   NOT NULL
);
CREATE INDEX actions_account ON actions (account_id, created_at, seq);
CREATE INDEX actions_type ON actions (account_id, type, created_at, seq);
CREATE INDEX actions_thng ON actions (account_id, thng_id, created_at, seq);
CREATE INDEX actions_product ON actions (account_id, product_id, created_at, seq);

-- How far the scans of each boot of each edge are stored.
CREATE TABLE scan_cursors (
    edge_id   TEXT   NOT NULL,
    boot      BIGINT NOT NULL,
    next_seq  BIGINT NOT NULL,
    PRIMARY KEY (edge_id, boot)
);

CREATE TABLE idempotency (
    account_id  TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    request     BLOB   NOT NULL,
    response    TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);
