-- Replicas that hold connections of Thngs; times are the database's, in milliseconds. One whose lease ran out
-- is marked as gone before its connections are closed, and never comes back under the same name.
CREATE TABLE replicas (
    id           TEXT    PRIMARY KEY,
    lease_until  BIGINT  NOT NULL,
    gone         BOOLEAN NOT NULL
);

-- Connections that Thngs have with their own keys; `~connected` is true while there is one.
CREATE TABLE connections (
    id          TEXT PRIMARY KEY,
    replica     TEXT NOT NULL REFERENCES replicas (id),
    account_id  TEXT NOT NULL,
    thng_id     TEXT NOT NULL
);
CREATE INDEX connections_thng ON connections (thng_id);
CREATE INDEX connections_replica ON connections (replica, id);
