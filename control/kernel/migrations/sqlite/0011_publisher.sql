-- Who writes the view of each region in Redis, under which term; times are the database's, in milliseconds.
CREATE TABLE publishers (
    region         TEXT   PRIMARY KEY,
    term           BIGINT NOT NULL,
    owner          TEXT   NOT NULL,
    lease_until    BIGINT NOT NULL,
    rebuild_asked  BIGINT NOT NULL,
    rebuild_done   BIGINT NOT NULL
);
