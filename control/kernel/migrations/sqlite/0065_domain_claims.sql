-- Short domains that accounts have claimed by the API. A claim is proven by a TXT record or a file; the first proof makes the
-- row in short_domains, so several accounts may have claimed one host. A short domain without a claim was given by the platform.
-- `next_check` is when the worker looks at it; nothing: never again by itself. `asked_at` is the last check that was asked for.
CREATE TABLE domain_claims (
    account_id      TEXT    NOT NULL REFERENCES accounts (id),
    host            TEXT    NOT NULL,
    token           TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    proof           TEXT,
    fault           TEXT,
    created_at      INTEGER NOT NULL,
    verified_at     INTEGER,
    checked_at      INTEGER,
    unproven_since  INTEGER,
    next_check      INTEGER,
    failures        INTEGER NOT NULL DEFAULT 0,
    asked_at        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, host)
);
CREATE INDEX domain_claims_host ON domain_claims (host);
CREATE INDEX domain_claims_due ON domain_claims (next_check) WHERE next_check IS NOT NULL;
-- What a short domain serves beside its links; the files are JSON as it is sent.
CREATE TABLE domain_files (
    host                  TEXT NOT NULL PRIMARY KEY REFERENCES short_domains (host),
    account_id            TEXT NOT NULL REFERENCES accounts (id),
    robots                TEXT NOT NULL,
    asset_links           TEXT,
    app_site_association  TEXT
);
CREATE INDEX domain_files_account ON domain_files (account_id);
