-- Keys of edges; the hash is SHA-256 of the key. An edge may have several valid ones, so that they rotate.
CREATE TABLE edge_keys (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    edge_id     TEXT   NOT NULL,
    hash        BYTEA  NOT NULL UNIQUE,
    created_at  BIGINT NOT NULL,
    revoked_at  BIGINT
);
CREATE INDEX edge_keys_edge ON edge_keys (edge_id, seq);

-- One row an edge: how far it is, and which replica holds its stream. A greater session is the newer one.
-- Times are milliseconds of the database's clock.
CREATE SEQUENCE edge_sessions;
CREATE TABLE edge_leases (
    edge_id      TEXT   PRIMARY KEY,
    session      BIGINT NOT NULL,
    replica      TEXT   NOT NULL,
    region       TEXT   NOT NULL,
    build        TEXT   NOT NULL,
    applied      BIGINT NOT NULL,
    rejected     JSONB  NOT NULL,
    lease_until  BIGINT NOT NULL
);

-- The running replicas of control.
CREATE TABLE control_replicas (
    id           TEXT   PRIMARY KEY,
    lease_until  BIGINT NOT NULL
);
