-- Applications that were deleted and whose users are removed in steps; `users` counts those that are gone.
CREATE TABLE removed_applications (
    app_id      TEXT   NOT NULL PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    users       BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);
