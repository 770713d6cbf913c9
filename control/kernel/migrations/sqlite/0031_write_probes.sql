-- A row for each process, written again and again: so readiness follows what the disk really takes.
CREATE TABLE write_probes (
    id INTEGER NOT NULL PRIMARY KEY,
    written_at INTEGER NOT NULL,
    filler BLOB NOT NULL
);
CREATE INDEX write_probes_by_time ON write_probes (written_at);
