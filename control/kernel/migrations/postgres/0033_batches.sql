-- Batches, and the tasks that make Thngs and short URLs for them. `name` of a task is its type, `doc` what it was
-- asked for with and how far it is.
CREATE TABLE batches (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    name        TEXT   NOT NULL,
    doc         JSONB  NOT NULL,
    facets      TEXT[] NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX batches_facets ON batches USING GIN (facets);
CREATE INDEX batches_account ON batches (account_id, created_at, seq);
CREATE INDEX batches_name ON batches (account_id, name, created_at, seq);

CREATE TABLE tasks (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    batch_id    TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    status      TEXT   NOT NULL,
    doc         JSONB  NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX tasks_batch ON tasks (account_id, batch_id, created_at, seq);
CREATE INDEX tasks_open ON tasks (updated_at) WHERE status = 'EXECUTING';
