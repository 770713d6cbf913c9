-- What many results of assessments were judged by: thresholds, markets, version of the rules. The id is a hash of the
-- document, and rows never change.
CREATE TABLE assessment_contexts (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    id         TEXT NOT NULL,
    doc        TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
);
