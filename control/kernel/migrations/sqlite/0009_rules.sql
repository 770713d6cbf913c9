-- Rules of redirection: one row for the account's own list (an empty application) and one for each application's.
CREATE TABLE redirect_rules (
    account_id      TEXT   NOT NULL REFERENCES accounts (id),
    application_id  TEXT   NOT NULL,
    project_id      TEXT   NOT NULL,
    rules           TEXT   NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    rev             BIGINT NOT NULL,
    PRIMARY KEY (account_id, application_id)
);

-- Changes from before say neither the Thng's name nor the projects: edges begin anew instead of hearing them.
UPDATE log_head SET compacted = head WHERE id = 1;
DELETE FROM redirect_log;
