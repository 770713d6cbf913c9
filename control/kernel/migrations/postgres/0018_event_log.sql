-- One log of what happened. `xid` is the transaction that wrote a row: rows of transactions that are over, in
-- the order (xid, seq), are a history to which nothing is added in the middle. `quiet` has a bit for each who is
-- not told: 1 subscribers, 2 reactions.
ALTER TABLE events ADD COLUMN xid BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint);
ALTER TABLE events ADD COLUMN quiet BIGINT NOT NULL DEFAULT 0;
CREATE INDEX events_order ON events (xid, seq);

-- Places in the log: `trimmed` is the last that was removed, the others how far a reader has delivered.
CREATE TABLE event_places (
    name TEXT   PRIMARY KEY,
    xid  BIGINT NOT NULL,
    seq  BIGINT NOT NULL
);

DROP TABLE outbox;
