-- Keys of edges; the hash is SHA-256 of the key. An edge may have several valid ones, so that they rotate.
CREATE TABLE edge_keys (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    edge_id     TEXT    NOT NULL,
    hash        BLOB    NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER
);
CREATE INDEX edge_keys_edge ON edge_keys (edge_id, seq);

-- One row an edge: how far it is, and which replica holds its stream. A SQLite database serves one process,
-- which knows its edges by itself: these stay empty there.
CREATE TABLE edge_leases (
    edge_id      TEXT    PRIMARY KEY,
    session      INTEGER NOT NULL,
    replica      TEXT    NOT NULL,
    region       TEXT    NOT NULL,
    build        TEXT    NOT NULL,
    applied      INTEGER NOT NULL,
    rejected     TEXT    NOT NULL,
    lease_until  INTEGER NOT NULL
);

CREATE TABLE control_replicas (
    id           TEXT    PRIMARY KEY,
    lease_until  INTEGER NOT NULL
);
