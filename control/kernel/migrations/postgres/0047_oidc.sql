-- States of sign-ins by a provider of identities that came back: SHA-256 of each, until the sign-in would have expired.
-- Nobody's account is known of them.
CREATE TABLE oidc_used_states (
    hash        BYTEA  NOT NULL PRIMARY KEY,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX oidc_used_states_expiry ON oidc_used_states (expires_at);
