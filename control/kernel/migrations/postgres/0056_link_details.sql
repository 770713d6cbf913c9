-- What people say about a link, and the words by which it is found. A table of its own: counting a scan rewrites a row of
-- `redirections`, and would carry all of this along, and write into the index below whenever a page is full.
-- Without a foreign key, which each write would check; a row is read together with its redirection or not at all. The words
-- begin with a mark of the account, so that the index is bound to it: see `control/redirects/src/domain/words.rs`.
CREATE TABLE redirection_details (
    seq     BIGINT   PRIMARY KEY,
    doc     JSONB    NOT NULL,
    facets  TEXT[]   NOT NULL,
    words   TSVECTOR NOT NULL
);
CREATE INDEX redirection_details_words ON redirection_details USING GIN (words);

-- How far the links that older releases made have their words.
CREATE TABLE redirection_fill (
    id     INT     PRIMARY KEY CHECK (id = 1),
    after  BIGINT  NOT NULL,
    done   BOOLEAN NOT NULL
);
INSERT INTO redirection_fill (id, after, done) VALUES (1, 0, false);
