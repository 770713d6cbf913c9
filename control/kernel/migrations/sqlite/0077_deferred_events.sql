-- Rows of the event log behind which the place of webhooks and reactions has moved on, because their account had more than its
-- share. `item` is the first item of the row that is still to be queued.
CREATE TABLE deferred_events (
    seq         BIGINT NOT NULL PRIMARY KEY,
    account_id  TEXT   NOT NULL,
    xid         BIGINT NOT NULL,
    item        BIGINT NOT NULL
);
CREATE INDEX deferred_events_account ON deferred_events (account_id, xid, seq);
