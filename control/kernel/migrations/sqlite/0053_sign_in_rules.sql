-- How operators of an account sign in: whether a provider of identities lets them in, and whether a password needs a second
-- factor beside it.
ALTER TABLE accounts ADD COLUMN provider_sign_in BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE accounts ADD COLUMN second_factor_required BOOLEAN NOT NULL DEFAULT FALSE;

-- Whether a provider of identities said who it is.
ALTER TABLE operator_sessions ADD COLUMN by_provider BOOLEAN NOT NULL DEFAULT FALSE;

-- When an anonymous user, or its key, was last known to be used; set when it is looked at, once a year.
ALTER TABLE app_users ADD COLUMN seen_at BIGINT;
CREATE INDEX app_users_idle ON app_users (COALESCE(seen_at, updated_at), id) WHERE status = 'anonymous';

-- Keys of users that were revoked are removed.
CREATE INDEX api_keys_users_revoked ON api_keys (revoked_at) WHERE kind = 'user' AND revoked_at IS NOT NULL;
