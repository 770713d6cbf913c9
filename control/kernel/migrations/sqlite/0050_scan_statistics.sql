-- Roll-ups of scans: for each hour how many there were, by few dimensions. `project_id` is empty for the account as a whole;
-- `dimension` is the number of a set of dimensions, `value` and `second` are the values of its members. The hours are
-- counted from 1970. Ids are no foreign keys: the counts stay when what they name is removed.
CREATE TABLE scan_statistics (
    account_id   TEXT    NOT NULL,
    project_id   TEXT    NOT NULL,
    dimension    INTEGER NOT NULL,
    hour         INTEGER NOT NULL,
    value        TEXT    NOT NULL,
    second       TEXT    NOT NULL,
    scans        INTEGER NOT NULL,
    new_devices  INTEGER NOT NULL,
    robots       INTEGER NOT NULL,
    PRIMARY KEY (account_id, project_id, dimension, hour, value, second)
) WITHOUT ROWID;
-- Old hours are removed.
CREATE INDEX scan_statistics_hour ON scan_statistics (hour);

-- The same by the day of UTC, written with the hours: whole days of a range are read here. Dimension 24, links, is only here.
CREATE TABLE scan_statistics_days (
    account_id   TEXT    NOT NULL,
    project_id   TEXT    NOT NULL,
    dimension    INTEGER NOT NULL,
    day          INTEGER NOT NULL,
    value        TEXT    NOT NULL,
    second       TEXT    NOT NULL,
    scans        INTEGER NOT NULL,
    new_devices  INTEGER NOT NULL,
    robots       INTEGER NOT NULL,
    PRIMARY KEY (account_id, project_id, dimension, day, value, second)
) WITHOUT ROWID;
-- Old days of links are removed.
CREATE INDEX scan_statistics_days_links ON scan_statistics_days (day) WHERE dimension = 24;

-- Devices that scanned on a day: a keyed hash that is another one the next day. Removed after some days.
CREATE TABLE scan_devices (
    day     INTEGER NOT NULL,
    device  INTEGER NOT NULL,
    PRIMARY KEY (day, device)
) WITHOUT ROWID;

-- 1 where a scan was counted when it was stored; NULL where the backfill has to count it.
ALTER TABLE actions ADD COLUMN counted INTEGER;

-- How far the backfill is in the table of actions.
CREATE TABLE scan_backfill (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    after_seq  INTEGER NOT NULL,
    is_done    BOOLEAN NOT NULL
);
INSERT INTO scan_backfill (id, after_seq, is_done) VALUES (1, 0, FALSE);

-- Requests for short ids that do not exist, by hour, domain and network (/24 or /48).
CREATE TABLE unknown_scans (
    account_id  TEXT    NOT NULL,
    hour        INTEGER NOT NULL,
    domain      TEXT    NOT NULL,
    network     TEXT    NOT NULL,
    requests    INTEGER NOT NULL,
    PRIMARY KEY (account_id, hour, domain, network)
) WITHOUT ROWID;
CREATE INDEX unknown_scans_hour ON unknown_scans (hour);

-- The last report of each edge about such requests that was counted.
CREATE TABLE unknown_scan_reports (
    edge_id  TEXT    PRIMARY KEY,
    boot     INTEGER NOT NULL,
    number   INTEGER NOT NULL
);
