-- Quotas that whoever runs the platform sets: those of all accounts, and those of one account, where `most` is NULL if it
-- has no limit whatever the others have.
CREATE TABLE quota_defaults (
    kind  TEXT   NOT NULL PRIMARY KEY,
    most  BIGINT NOT NULL
);
CREATE TABLE quota_limits (
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    kind        TEXT   NOT NULL,
    most        BIGINT,
    PRIMARY KEY (account_id, kind)
);

-- The use of an account, where a limit holds for it: without a limit there is no row, and nothing is counted. `used` is of
-- `day` (days since 1970) if the quota is one of a day, else `day` is 0. `over` is what came above it on that day and was
-- not stored. Until a first count, `counted_at` is NULL: `used` holds what changed since, and nothing is refused. `fence`
-- grows with each count.
CREATE TABLE quota_uses (
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    kind        TEXT   NOT NULL,
    most        BIGINT NOT NULL,
    day         BIGINT NOT NULL,
    used        BIGINT NOT NULL,
    over        BIGINT NOT NULL,
    fence       BIGINT NOT NULL,
    counted_at  BIGINT,
    PRIMARY KEY (account_id, kind)
);
-- First counts that are due, and the oldest counts.
CREATE INDEX quota_uses_counted ON quota_uses (counted_at, account_id, kind);

-- What is open, such as streams, by the process that holds it. A process that died is left out once its lease is over.
CREATE TABLE quota_holders (
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    kind         TEXT   NOT NULL,
    holder       TEXT   NOT NULL,
    used         BIGINT NOT NULL,
    lease_until  BIGINT NOT NULL,
    PRIMARY KEY (account_id, kind, holder)
);

-- Mails are sent account by account: each has a turn, the empty text stands for mails of none. A greater number was served
-- later.
CREATE TABLE mail_turns (
    account_id  TEXT   NOT NULL PRIMARY KEY,
    turn        BIGINT NOT NULL
);
INSERT INTO mail_turns (account_id, turn) SELECT DISTINCT COALESCE(account_id, ''), 0 FROM mails;
CREATE INDEX mails_account ON mails (COALESCE(account_id, ''), due_at, seq);
