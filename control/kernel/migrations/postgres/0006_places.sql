-- Places; latitude and longitude stand in columns for the search of the nearest.
CREATE TABLE places (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    name        TEXT   NOT NULL,
    latitude    DOUBLE PRECISION,
    longitude   DOUBLE PRECISION,
    doc         JSONB  NOT NULL,
    facets      TEXT[] NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX places_facets ON places USING GIN (facets);
CREATE INDEX places_account ON places (account_id, created_at, seq);
CREATE INDEX places_name ON places (account_id, name, created_at, seq);
CREATE INDEX places_point ON places (account_id, latitude, longitude);

-- Where Thngs were; `doc` holds the members that no query goes by.
CREATE TABLE thng_locations (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    thng_id     TEXT   NOT NULL,
    timestamp   BIGINT NOT NULL,
    latitude    DOUBLE PRECISION,
    longitude   DOUBLE PRECISION,
    place_id    TEXT,
    doc         JSONB  NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX thng_locations_time ON thng_locations (account_id, thng_id, timestamp, seq);

CREATE TABLE collections (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    name        TEXT   NOT NULL,
    doc         JSONB  NOT NULL,
    facets      TEXT[] NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX collections_facets ON collections USING GIN (facets);
CREATE INDEX collections_account ON collections (account_id, created_at, seq);
CREATE INDEX collections_name ON collections (account_id, name, created_at, seq);

-- Members, with their own place in lists, so that a collection's list needs no sort.
CREATE TABLE collection_thngs (
    account_id     TEXT   NOT NULL REFERENCES accounts (id),
    collection_id  TEXT   NOT NULL,
    thng_id        TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    seq            BIGINT NOT NULL,
    PRIMARY KEY (collection_id, thng_id)
);
CREATE INDEX collection_thngs_order ON collection_thngs (collection_id, created_at, seq);
CREATE INDEX collection_thngs_thng ON collection_thngs (thng_id, collection_id);

CREATE TABLE collection_collections (
    account_id     TEXT   NOT NULL REFERENCES accounts (id),
    collection_id  TEXT   NOT NULL,
    member_id      TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    seq            BIGINT NOT NULL,
    PRIMARY KEY (collection_id, member_id)
);
CREATE INDEX collection_collections_order ON collection_collections (collection_id, created_at, seq);
CREATE INDEX collection_collections_member ON collection_collections (member_id, collection_id);

-- `blob` is the key of the bytes in the blob store, once there are any.
CREATE TABLE files (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    name        TEXT   NOT NULL,
    doc         JSONB  NOT NULL,
    facets      TEXT[] NOT NULL,
    blob        TEXT,
    size_bytes  BIGINT,
    etag        TEXT,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX files_facets ON files USING GIN (facets);
CREATE INDEX files_account ON files (account_id, created_at, seq);
CREATE INDEX files_name ON files (account_id, name, created_at, seq);

-- Keys in the blob store that no file has: of uploads under way until `due_at`, and of removed files.
CREATE TABLE blob_garbage (
    blob    TEXT   PRIMARY KEY,
    due_at  BIGINT NOT NULL
);
CREATE INDEX blob_garbage_due ON blob_garbage (due_at);
