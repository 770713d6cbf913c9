-- What operators may do: ids of roles with commas between them, and the projects that they are confined to. Every
-- operator of before could do everything. `kind` is `person` or `machine`. An operator who was invited and has not
-- accepted has the SHA-256 of the code of the invitation, and when that ends.
ALTER TABLE operators ADD COLUMN kind TEXT NOT NULL DEFAULT 'person';
ALTER TABLE operators ADD COLUMN roles TEXT NOT NULL DEFAULT 'owner';
ALTER TABLE operators ADD COLUMN projects TEXT;
ALTER TABLE operators ADD COLUMN invitation BYTEA;
ALTER TABLE operators ADD COLUMN invited_until BIGINT;
CREATE UNIQUE INDEX operators_invitation ON operators (invitation) WHERE invitation IS NOT NULL;

-- Roles beside those that every account has. `kind` is `operator` or `userInApp`; `permissions` are such as
-- `products:create,read`, with spaces between them.
CREATE TABLE roles (
    seq          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           TEXT   NOT NULL UNIQUE,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    name         TEXT   NOT NULL,
    doc          JSONB  NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    kind         TEXT   NOT NULL,
    permissions  TEXT   NOT NULL
);
CREATE INDEX roles_account ON roles (account_id, created_at, seq);

-- The role of the users of an application; null restricts them no further.
ALTER TABLE applications ADD COLUMN user_role TEXT;
