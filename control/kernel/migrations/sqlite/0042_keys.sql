-- What operators see of keys. The id of a key is the start of its hash; rows of older releases have no label.
-- `last_used_at` is rounded down to the hour. `networks` are CIDR blocks with commas; none means everywhere.
-- `life_ms` is how long a key was given when its end was set: what replaces it (`replaced_at`) lives as long.
-- `generation` says how the key of an application or Thng is derived; null is the form without a prefix.
-- The table is rebuilt, because SQLite cannot add an identity column.
CREATE TABLE api_keys_with_seq (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    hash          BLOB   NOT NULL UNIQUE,
    account_id    TEXT   NOT NULL REFERENCES accounts (id),
    kind          TEXT   NOT NULL,
    actor_id      TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    revoked_at    BIGINT,
    project_id    TEXT,
    app_id        TEXT,
    label         TEXT,
    created_by    TEXT,
    updated_at    BIGINT,
    last_used_at  BIGINT,
    expires_at    BIGINT,
    life_ms       BIGINT,
    replaced_at   BIGINT,
    networks      TEXT,
    generation    BIGINT
);
INSERT INTO api_keys_with_seq (hash, account_id, kind, actor_id, created_at, revoked_at, project_id, app_id)
    SELECT hash, account_id, kind, actor_id, created_at, revoked_at, project_id, app_id FROM api_keys
    ORDER BY created_at, rowid;
DROP TABLE api_keys;
ALTER TABLE api_keys_with_seq RENAME TO api_keys;
CREATE INDEX api_keys_actor ON api_keys (account_id, actor_id);
CREATE INDEX api_keys_app ON api_keys (app_id) WHERE app_id IS NOT NULL;
UPDATE api_keys SET label = CASE
    WHEN EXISTS (SELECT 1 FROM api_keys o WHERE o.account_id = api_keys.account_id AND o.actor_id = api_keys.actor_id
        AND (o.created_at, o.hash) < (api_keys.created_at, api_keys.hash)) THEN 'later key'
    ELSE 'first key' END
    WHERE kind = 'operator';
CREATE INDEX api_keys_operators ON api_keys (account_id, created_at, seq)
    WHERE kind IN ('operator', 'projectOperator');

-- Which of its keys an application has now: 0 is the form without a prefix.
ALTER TABLE applications ADD COLUMN app_generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE applications ADD COLUMN trusted_generation BIGINT NOT NULL DEFAULT 0;
