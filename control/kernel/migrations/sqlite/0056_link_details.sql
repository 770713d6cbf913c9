-- What people say about a link. A table of its own: counting a scan rewrites a row of `redirections`, and would carry all of
-- this along.
CREATE TABLE redirection_details (
    seq     INTEGER PRIMARY KEY,
    doc     TEXT    NOT NULL,
    facets  TEXT    NOT NULL
);
-- The words by which a link is found; `rowid` is its `seq`. They are separated by blanks, so that the tokenizer has nothing to
-- decide, and begin with a mark of the account: see `control/redirects/src/domain/words.rs`.
CREATE VIRTUAL TABLE redirection_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = 'none', tokenize = 'ascii'
);

-- How far the links that older releases made have their words.
CREATE TABLE redirection_fill (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    after  BIGINT  NOT NULL,
    done   BOOLEAN NOT NULL
);
INSERT INTO redirection_fill (id, after, done) VALUES (1, 0, false);
