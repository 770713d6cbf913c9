-- Whether a change of many links waits for a second operator.
ALTER TABLE accounts ADD COLUMN approve_bulk_changes BOOLEAN NOT NULL DEFAULT FALSE;
-- Changes of many links, and the undoing of such changes. `of_change` is what an undo takes back. `lease_until` is on the clock
-- of the database; `fence` grows with each worker that takes one; `failures` counts the tries since the last step. `settled`
-- is 1 when it has ended. Until `undo_until` it can be undone; nothing when its former values are gone.
CREATE TABLE link_changes (
    seq           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            TEXT   NOT NULL UNIQUE,
    account_id    TEXT   NOT NULL REFERENCES accounts (id),
    kind          TEXT   NOT NULL,
    of_change     TEXT,
    made_by       TEXT   NOT NULL,
    status        TEXT   NOT NULL,
    doc           JSONB  NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    completed_at  BIGINT,
    undo_until    BIGINT,
    settled       BIGINT NOT NULL DEFAULT 0,
    lease_until   BIGINT NOT NULL DEFAULT 0,
    fence         BIGINT NOT NULL DEFAULT 0,
    failures      BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX link_changes_account ON link_changes (account_id, created_at, seq);
CREATE INDEX link_changes_open ON link_changes (lease_until, seq) WHERE settled = 0;
CREATE INDEX link_changes_former ON link_changes (undo_until) WHERE undo_until IS NOT NULL;
-- The links of a change as they were before it. `link` is the place of the link, `rev_before` its revision then, `rev` the one
-- that the change gave it: if the link has another one, somebody changed it since.
CREATE TABLE link_change_former (
    change_seq  BIGINT NOT NULL REFERENCES link_changes (seq),
    link        BIGINT NOT NULL,
    rev_before  BIGINT NOT NULL,
    rev         BIGINT NOT NULL,
    doc         TEXT   NOT NULL,
    PRIMARY KEY (change_seq, link)
);
CREATE INDEX link_change_former_link ON link_change_former (link);
-- Links that a change, or its undoing, left as they are, and why.
CREATE TABLE link_change_conflicts (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    change_id   TEXT   NOT NULL,
    domain      TEXT   NOT NULL,
    short_id    TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX link_change_conflicts_change ON link_change_conflicts (account_id, change_id, created_at, seq);
