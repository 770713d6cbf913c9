-- Sign-in of people. Keys of sessions are in `api_keys` with the kind `session`: releases before refuse them.
-- A removed operator takes all this with it, also where a release before removes it.

-- `email` is in the form in which it is compared; `password` is a PHC string of argon2id.
CREATE TABLE operator_passwords (
    operator_id  TEXT   NOT NULL PRIMARY KEY REFERENCES operators (id) ON DELETE CASCADE,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    email        TEXT   NOT NULL,
    password     TEXT   NOT NULL,
    changed_at   BIGINT NOT NULL
);
CREATE INDEX operator_passwords_email ON operator_passwords (email);

-- The secret of an authenticator app, encrypted. It counts once a code confirmed it. `last_step` is the time step of the
-- last code that was used, so that each works once.
CREATE TABLE operator_authenticators (
    operator_id   TEXT   NOT NULL PRIMARY KEY REFERENCES operators (id) ON DELETE CASCADE,
    account_id    TEXT   NOT NULL REFERENCES accounts (id),
    sealed        BLOB   NOT NULL,
    confirmed_at  BIGINT,
    last_step     BIGINT NOT NULL,
    created_at    BIGINT NOT NULL
);

-- Keyed hashes of the recovery codes that were not used yet.
CREATE TABLE operator_recovery_codes (
    hash         BLOB   NOT NULL PRIMARY KEY,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    operator_id  TEXT   NOT NULL REFERENCES operators (id) ON DELETE CASCADE
);
CREATE INDEX operator_recovery_codes_operator ON operator_recovery_codes (operator_id);

-- What operators see of their sessions; `hash` is that of the key. `network` is a /24 or /48.
CREATE TABLE operator_sessions (
    hash          BLOB   NOT NULL PRIMARY KEY,
    account_id    TEXT   NOT NULL REFERENCES accounts (id),
    operator_id   TEXT   NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT NOT NULL,
    network       TEXT,
    agent         TEXT
);
CREATE INDEX operator_sessions_operator ON operator_sessions (operator_id, created_at);
CREATE INDEX operator_sessions_used ON operator_sessions (last_used_at);

-- Networks from which an operator signed in: strangers' wrong passwords do not slow it down there.
CREATE TABLE operator_networks (
    operator_id  TEXT   NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    network      TEXT   NOT NULL,
    last_at      BIGINT NOT NULL,
    PRIMARY KEY (operator_id, network)
);

-- Codes by which operators set a new password: SHA-256 of each, until it is used or expires.
CREATE TABLE operator_password_resets (
    hash         BLOB   NOT NULL PRIMARY KEY,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    operator_id  TEXT   NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    expires_at   BIGINT NOT NULL
);
CREATE INDEX operator_password_resets_operator ON operator_password_resets (operator_id);
CREATE INDEX operator_password_resets_expiry ON operator_password_resets (expires_at);

-- Tries to sign in with an address, be it known or not. The subject is a keyed hash; nobody's account is known of it.
CREATE TABLE sign_in_attempts (
    subject  BLOB   NOT NULL PRIMARY KEY,
    count    BIGINT NOT NULL,
    until    BIGINT NOT NULL,
    last_at  BIGINT NOT NULL
);
CREATE INDEX sign_in_attempts_last ON sign_in_attempts (last_at);

-- Keys of sessions that are over are removed.
CREATE INDEX api_keys_sessions ON api_keys (expires_at) WHERE kind = 'session';
