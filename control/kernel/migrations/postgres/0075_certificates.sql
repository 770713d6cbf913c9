-- Authorities that give certificates for short domains (ACME), one row for each directory. `credentials` is the account of this
-- service at it, encrypted. One control at a time asks it, under a lease with a fence. `paused_until`: it was asked too often.
CREATE TABLE certificate_authorities (
    seq           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    directory     TEXT   NOT NULL UNIQUE,
    credentials   TEXT,
    paused_until  BIGINT NOT NULL DEFAULT 0,
    lease_until   BIGINT NOT NULL DEFAULT 0,
    fence         BIGINT NOT NULL DEFAULT 0
);
-- The certificate of a short domain: that which edges have, the order under way, and what an authority is about to check. Both
-- keys are encrypted. A short domain without a row was not looked at yet. `next_try` is when an order is made, or goes on.
CREATE TABLE domain_certificates (
    host               TEXT    NOT NULL PRIMARY KEY REFERENCES short_domains (host),
    account_id         TEXT    NOT NULL REFERENCES accounts (id),
    is_off             BOOLEAN NOT NULL DEFAULT FALSE,
    chain              TEXT,
    sealed_key         TEXT,
    issuer             TEXT,
    not_before         BIGINT,
    not_after          BIGINT,
    directory          TEXT,
    order_url          TEXT,
    order_key          TEXT,
    token              TEXT,
    key_authorization  TEXT,
    challenge_until    BIGINT,
    error              TEXT,
    failures           BIGINT  NOT NULL DEFAULT 0,
    next_try           BIGINT  NOT NULL,
    asked_at           BIGINT  NOT NULL DEFAULT 0
);
CREATE INDEX domain_certificates_account ON domain_certificates (account_id);
CREATE INDEX domain_certificates_due ON domain_certificates (next_try);
