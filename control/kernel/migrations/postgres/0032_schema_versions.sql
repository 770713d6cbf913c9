-- From which schema on a release can use this one: an older release reads here whether it may start.
CREATE TABLE schema_versions (
    version BIGINT NOT NULL PRIMARY KEY,
    compatible_from BIGINT NOT NULL
);
