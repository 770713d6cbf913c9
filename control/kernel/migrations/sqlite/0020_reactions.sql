-- The ids of the reactions by which an event came about, first to last, with commas; null for most.
ALTER TABLE events ADD COLUMN cause TEXT;

-- What is done when something happens. `done`, `failed` and `dropped` count what was carried out, what could not
-- be, and what found no room in the queue; `failure` says why the last one could not be.
CREATE TABLE reactions (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT   NOT NULL UNIQUE,
    account_id     TEXT   NOT NULL REFERENCES accounts (id),
    project_id     TEXT,
    name           TEXT   NOT NULL,
    doc            TEXT   NOT NULL,
    status         TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    since_xid      BIGINT NOT NULL DEFAULT 0,
    since_seq      BIGINT NOT NULL DEFAULT 0,
    done           BIGINT NOT NULL DEFAULT 0,
    failed         BIGINT NOT NULL DEFAULT 0,
    dropped        BIGINT NOT NULL DEFAULT 0,
    last_at        BIGINT,
    failure        TEXT,
    failure_event  TEXT,
    failure_at     BIGINT
);
CREATE INDEX reactions_account ON reactions (account_id, created_at, seq);

-- What is to be done, in the order of the log; a row goes in the transaction that does it.
CREATE TABLE reaction_tasks (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  TEXT   NOT NULL,
    reaction    BIGINT NOT NULL,
    event_id    TEXT   NOT NULL,
    cause       TEXT,
    deed        TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    attempts    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX reaction_tasks_account ON reaction_tasks (account_id, seq);
CREATE INDEX reaction_tasks_reaction ON reaction_tasks (reaction, seq);

-- Accounts take turns; whoever holds the row does what its account's reactions are to do. Times are the
-- database's, in milliseconds.
CREATE TABLE reaction_turns (
    account_id  TEXT   PRIMARY KEY REFERENCES accounts (id),
    served_at   BIGINT NOT NULL DEFAULT 0,
    resume_at   BIGINT NOT NULL DEFAULT 0
);
