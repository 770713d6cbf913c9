-- From which schema on a release can use this one: an older release reads here whether it may start.
CREATE TABLE schema_versions (
    version INTEGER NOT NULL PRIMARY KEY,
    compatible_from INTEGER NOT NULL
);
