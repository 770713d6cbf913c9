-- Where items that are tagged as display pieces are mostly seen: of others that look like it there, this is said.
CREATE TABLE display_places (
    thng_id    TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    region     TEXT NOT NULL
);
CREATE INDEX display_places_region ON display_places (account_id, region);
