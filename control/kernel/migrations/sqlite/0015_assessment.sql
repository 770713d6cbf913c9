-- What the last assessment of a Thng said: three words; null before the first.
ALTER TABLE thngs ADD COLUMN verdict TEXT;

-- The last sessions of each Thng that was scanned, in a form of their own of some 2 KiB.
CREATE TABLE scan_profiles (
    thng_id     TEXT NOT NULL PRIMARY KEY,
    account_id  TEXT NOT NULL REFERENCES accounts (id),
    profile     BLOB NOT NULL
);

-- Settings of assessment: of the account (an empty owner), of a project or of a product.
CREATE TABLE assessment_settings (
    account_id  TEXT   NOT NULL REFERENCES accounts (id),
    owner       TEXT   NOT NULL,
    settings    TEXT     NOT NULL,
    version     BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (account_id, owner)
);
