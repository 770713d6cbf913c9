-- A property of a Thng or product with its latest value: the one with the greatest timestamp.
-- Rows change often and grow rarely: the room left on each page lets a change stay on it.
CREATE TABLE properties (
    seq          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    resource_id  TEXT   NOT NULL,
    key          TEXT   NOT NULL,
    value        TEXT   NOT NULL,
    timestamp    BIGINT NOT NULL,
    written_at   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    CONSTRAINT properties_key UNIQUE (resource_id, key)
) WITH (fillfactor = 70);
CREATE INDEX properties_order ON properties (resource_id, created_at, seq);

-- Every value of a property, one row for each point in time; `property` is `seq` of its property.
CREATE TABLE property_points (
    property    BIGINT NOT NULL,
    timestamp   BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    value       TEXT   NOT NULL,
    PRIMARY KEY (property, timestamp)
);

-- Properties that are gone, whose points are still to be removed in bounded steps; nothing reads those.
CREATE TABLE properties_dropped (
    property  BIGINT PRIMARY KEY
);
