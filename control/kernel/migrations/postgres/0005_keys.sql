-- Projects, their applications and users; which of them a key is confined to.
CREATE TABLE projects (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    name        TEXT   NOT NULL,
    doc         JSONB NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX projects_account ON projects (account_id, created_at, seq);

CREATE TABLE applications (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    project_id  TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    doc         JSONB NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX applications_project ON applications (account_id, project_id, created_at, seq);

-- `folded` is the e-mail address as it is compared; `password` is a PHC string of argon2id;
-- `activation` is the SHA-256 of the code that activates the user.
CREATE TABLE app_users (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    project_id  TEXT   NOT NULL,
    app_id      TEXT   NOT NULL,
    status      TEXT   NOT NULL,
    folded      TEXT,
    password    TEXT,
    activation  BYTEA,
    doc         JSONB NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    CONSTRAINT app_users_email UNIQUE (project_id, folded)
);
CREATE INDEX app_users_account ON app_users (account_id, created_at, seq);
CREATE INDEX app_users_project ON app_users (account_id, project_id, created_at, seq);
CREATE INDEX app_users_app ON app_users (app_id);

-- A key that names an application is valid for as long as the application is there.
ALTER TABLE api_keys ADD COLUMN project_id TEXT;
ALTER TABLE api_keys ADD COLUMN app_id TEXT;
CREATE INDEX api_keys_app ON api_keys (app_id) WHERE app_id IS NOT NULL;
