-- Jobs: long work that is asked for at once and done bit by bit by workers. `request` is what was asked for,
-- `blob` the content of the file until it is read, `history` the states with their times. `fence` grows each time
-- that a worker takes the job; a worker whose fence is not the row's any more may not write. Times of leases
-- and turns are the database's own.
CREATE TABLE jobs (
    seq           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            TEXT   NOT NULL UNIQUE,
    account_id    TEXT   NOT NULL REFERENCES accounts (id),
    project_id    TEXT,
    type          TEXT   NOT NULL,
    status        TEXT   NOT NULL,
    history       JSONB  NOT NULL,
    request       JSONB  NOT NULL,
    message       TEXT,
    blob          TEXT,
    requested     BIGINT NOT NULL,
    done          BIGINT NOT NULL,
    failed        BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    completed_at  BIGINT,
    fence         BIGINT NOT NULL,
    lease_until   BIGINT NOT NULL,
    served_at     BIGINT NOT NULL,
    failures      BIGINT NOT NULL
);
CREATE INDEX jobs_account ON jobs (account_id, created_at, seq);
CREATE INDEX jobs_open ON jobs (account_id) WHERE completed_at IS NULL;
CREATE INDEX jobs_blob ON jobs (blob) WHERE blob IS NOT NULL;

-- When a worker last did something for an account: accounts take turns.
CREATE TABLE job_turns (
    account_id  TEXT   PRIMARY KEY REFERENCES accounts (id),
    served_at   BIGINT NOT NULL
);

-- The input of jobs in parts, each from the entry `first` on; a part goes when its entries are carried out.
CREATE TABLE job_chunks (
    job      BIGINT NOT NULL,
    first    BIGINT NOT NULL,
    entries  TEXT   NOT NULL,
    PRIMARY KEY (job, first)
);

-- The operations that failed; `entry` is the place in the input.
CREATE TABLE job_logs (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    job_id      TEXT   NOT NULL,
    entry       BIGINT NOT NULL,
    type        TEXT   NOT NULL,
    payload     JSONB  NOT NULL,
    message     TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    CONSTRAINT job_logs_entry UNIQUE (job_id, entry)
);
CREATE INDEX job_logs_order ON job_logs (job_id, created_at, seq);
