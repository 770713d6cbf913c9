-- States of sign-ins by a provider of identities that came back: SHA-256 of each, until the sign-in would have expired.
-- Nobody's account is known of them.
CREATE TABLE oidc_used_states (
    hash        BYTEA  NOT NULL PRIMARY KEY,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX oidc_used_states_expiry ON oidc_used_states (expires_at);

-- Identities at a provider that operators sign in with. A removed operator takes them with it, also where a release before
-- removes it. Who signs in with one names no account.
CREATE TABLE operator_identities (
    account_id    TEXT   NOT NULL REFERENCES accounts (id),
    operator_id   TEXT   NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    issuer        TEXT   NOT NULL,
    subject       TEXT   NOT NULL,
    email         TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT NOT NULL,
    PRIMARY KEY (account_id, issuer, subject)
);
CREATE INDEX operator_identities_identity ON operator_identities (issuer, subject);
CREATE INDEX operator_identities_operator ON operator_identities (operator_id, created_at);

-- Operators by the address that a provider has verified.
CREATE INDEX operators_email ON operators (lower(email));
