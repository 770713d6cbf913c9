-- Cases: items that an assessment suspects, for a person to decide on; at most one of each kind for a Thng.
CREATE TABLE cases (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    project_id  TEXT,
    thng_id     TEXT   NOT NULL,
    product_id  TEXT,
    kind        TEXT   NOT NULL,
    status      TEXT   NOT NULL,
    version     BIGINT NOT NULL,
    doc         TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    UNIQUE (thng_id, kind)
);
CREATE INDEX cases_account ON cases (account_id, created_at, seq);
CREATE INDEX cases_status ON cases (account_id, status, created_at, seq);
CREATE INDEX cases_thng ON cases (account_id, thng_id, created_at, seq);
