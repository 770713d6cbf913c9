-- Links that sign the first owner in, printed at a start: SHA-256 of each code, until it is used or expires.
CREATE TABLE operator_sign_in_links (
    hash         BLOB   NOT NULL PRIMARY KEY,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    operator_id  TEXT   NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    expires_at   BIGINT NOT NULL
);
CREATE INDEX operator_sign_in_links_operator ON operator_sign_in_links (operator_id);
CREATE INDEX operator_sign_in_links_expiry ON operator_sign_in_links (expires_at);
