-- A property of a Thng or product with its latest value: the one with the greatest timestamp.
CREATE TABLE properties (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    resource_id  TEXT   NOT NULL,
    key          TEXT   NOT NULL,
    value        TEXT   NOT NULL,
    timestamp    BIGINT NOT NULL,
    written_at   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    CONSTRAINT properties_key UNIQUE (resource_id, key)
);
CREATE INDEX properties_order ON properties (resource_id, created_at, seq);

-- Every value of a property, one row for each point in time; `property` is `seq` of its property.
CREATE TABLE property_points (
    property    BIGINT NOT NULL,
    timestamp   BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    value       TEXT   NOT NULL,
    PRIMARY KEY (property, timestamp)
) WITHOUT ROWID;

-- Properties that are gone, whose points are still to be removed in bounded steps; nothing reads those.
CREATE TABLE properties_dropped (
    property  BIGINT PRIMARY KEY
);
