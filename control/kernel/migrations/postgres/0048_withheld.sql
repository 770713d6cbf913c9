-- What whoever runs the platform withholds, across accounts: an 'account' that is suspended (`subject` is its id), a 'link'
-- that was taken down (short domain, a slash and the folded short id), a 'host' that nobody is led to.
CREATE TABLE withheld (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        TEXT   NOT NULL,
    subject     TEXT   NOT NULL,
    account_id  TEXT REFERENCES accounts (id),
    reason      TEXT   NOT NULL,
    author      TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    ends_at     BIGINT,
    UNIQUE (kind, subject)
);
CREATE INDEX withheld_ends ON withheld (ends_at) WHERE ends_at IS NOT NULL;

-- The same of a suspended account, where keys are looked up and work is claimed.
ALTER TABLE accounts ADD COLUMN suspended_at BIGINT;

-- Keys of whoever runs the platform, for `/platform/` alone. The id of a key is the start of its hash.
CREATE TABLE platform_keys (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash        BYTEA  NOT NULL UNIQUE,
    label       TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT,
    revoked_at  BIGINT
);
