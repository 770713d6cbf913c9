-- Scans by edges leave `actions` for a file of their own. How far those of before were moved there.
CREATE TABLE scan_move (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    after  BIGINT  NOT NULL,
    done   BOOLEAN NOT NULL
);
INSERT INTO scan_move (id, after, done) VALUES (1, 0, false);
CREATE INDEX actions_scans ON actions (seq) WHERE type = 'implicitScans';
