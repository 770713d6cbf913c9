-- Scans by edges leave `actions`: most of what an account stores, never changed, and removed when their time is over.
-- The table has a partition for each month; the columns stand in an order that wastes no padding.
CREATE TABLE scans (
    created_at    BIGINT NOT NULL,
    seq           BIGINT NOT NULL,
    timestamp     BIGINT NOT NULL,
    account       INT    NOT NULL,
    shape         INT    NOT NULL,
    agent         INT,
    place         INT,
    referer       INT,
    language      INT,
    rule          INT,
    key           BYTEA  NOT NULL,
    thng          BYTEA,
    ip            BYTEA,
    short_id      TEXT,
    entry         TEXT,
    redirect_url  TEXT
) PARTITION BY RANGE (created_at);
-- Scans of one batch are created at one time, so this index holds their places and little else.
CREATE INDEX scans_account ON scans (account, created_at);
CREATE INDEX scans_thng ON scans (thng, created_at) WHERE thng IS NOT NULL;
-- A scan is found by its id, which holds the time: 0.03 ms and 5 to 20 bytes, against 0.4 ms by a BRIN of 32 pages, which
-- does not hold the newest rows at all until it is summarized. Webhooks and reactions look for each scan so.
CREATE INDEX scans_timestamp ON scans (timestamp);

-- What scans of an account share in a month: browsers, places, referers. It stays empty: it is the pattern of a table
-- for each month.
CREATE TABLE scan_texts (
    id       INT      PRIMARY KEY,
    account  INT      NOT NULL,
    kind     SMALLINT NOT NULL,
    hash     TEXT     NOT NULL,
    text     TEXT     NOT NULL,
    facets   JSONB    NOT NULL,
    UNIQUE (account, kind, hash)
);
-- Begins again after 2 thousand million: by then the month of the first ones is gone.
CREATE SEQUENCE scan_text_ids AS INT CYCLE;

-- Places of scans in lists, above those of actions.
CREATE SEQUENCE scan_counter START 281474976710656 MINVALUE 281474976710656;

CREATE TABLE scan_accounts (
    id          INT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  TEXT NOT NULL UNIQUE
);

CREATE TABLE scan_months (
    month  INT PRIMARY KEY
);

-- How far the scans of each boot of each edge are stored; `scan_cursors` says how far their effects are.
CREATE TABLE scan_intake (
    edge_id   TEXT   NOT NULL,
    boot      BIGINT NOT NULL,
    next_seq  BIGINT NOT NULL,
    PRIMARY KEY (edge_id, boot)
);

-- How far the scans of before were moved out of `actions`.
CREATE TABLE scan_move (
    id     INT    PRIMARY KEY CHECK (id = 1),
    after  BIGINT NOT NULL,
    done   BOOLEAN NOT NULL
);
INSERT INTO scan_move (id, after, done) VALUES (1, 0, false);
CREATE INDEX actions_scans ON actions (seq) WHERE type = 'implicitScans';

-- How far the scans of each boot of each edge are charged to quotas, and which of those that are under way are not stored.
CREATE TABLE scan_charges (
    edge_id     TEXT   NOT NULL,
    boot        BIGINT NOT NULL,
    next_seq    BIGINT NOT NULL,
    not_stored  JSONB  NOT NULL,
    PRIMARY KEY (edge_id, boot)
);
