-- The types of actions that accounts made for themselves; the others are built in.
CREATE TABLE action_types (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    name        TEXT   NOT NULL,
    doc         TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    CONSTRAINT action_types_name UNIQUE (account_id, name)
);
