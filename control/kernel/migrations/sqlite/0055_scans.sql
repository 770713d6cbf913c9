-- Scans by edges leave `actions` for a file of their own. How far those that older releases stored were moved there.
CREATE TABLE scan_move (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    after  BIGINT  NOT NULL,
    done   BOOLEAN NOT NULL
);
INSERT INTO scan_move (id, after, done) VALUES (1, 0, false);

-- How far the scans of each boot of each edge are charged to quotas, and which of those that are under way are not stored.
CREATE TABLE scan_charges (
    edge_id     TEXT   NOT NULL,
    boot        BIGINT NOT NULL,
    next_seq    BIGINT NOT NULL,
    not_stored  TEXT   NOT NULL,
    PRIMARY KEY (edge_id, boot)
);

-- Up to which position the last rebuild of a profile has read the scans by edges: these are stored before they are added.
ALTER TABLE scan_profiles ADD COLUMN read_to BIGINT NOT NULL DEFAULT 0;
