-- Mails that wait to be sent, encrypted because they hold codes; the id is also in the mail. `due_at` is when the next try
-- may begin, on the clock of the database.
CREATE TABLE mails (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   REFERENCES accounts (id),
    sealed      BLOB   NOT NULL,
    tries       BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX mails_due ON mails (due_at, seq);

-- When the activation code of a user expires; a code of an older release has no end.
ALTER TABLE app_users ADD COLUMN activation_until BIGINT;

-- Codes by which users set a new password: SHA-256 of each, until it is used or expires.
CREATE TABLE password_resets (
    hash        BLOB   NOT NULL PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    user_id     TEXT   NOT NULL,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX password_resets_user ON password_resets (user_id);
CREATE INDEX password_resets_expiry ON password_resets (expires_at);

-- Tries with an address, be it known or not: passwords, registrations, resets. The subject is a keyed hash.
CREATE TABLE user_attempts (
    subject     BLOB   NOT NULL PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    count       BIGINT NOT NULL,
    until       BIGINT NOT NULL,
    last_at     BIGINT NOT NULL
);
CREATE INDEX user_attempts_last ON user_attempts (last_at);

-- Codes went to the caller before: accounts that have users with an address keep that, until they choose mail.
UPDATE accounts SET doc = json_set(doc, '$.userRegistration', 'caller')
    WHERE id IN (SELECT account_id FROM app_users WHERE folded IS NOT NULL);

-- Registrations that nobody confirmed are removed in the end.
CREATE INDEX app_users_expiry ON app_users (activation_until) WHERE activation_until IS NOT NULL;
