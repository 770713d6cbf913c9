-- Webhooks. Times of delivery are the database's, in milliseconds; a worker holds one by lease and fence.
CREATE TABLE webhooks (
    seq            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id             TEXT   NOT NULL UNIQUE,
    account_id     TEXT   NOT NULL REFERENCES accounts (id),
    project_id     TEXT,
    name           TEXT   NOT NULL,
    doc            JSONB  NOT NULL,
    status         TEXT   NOT NULL,
    reason         TEXT,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    since_xid      BIGINT NOT NULL DEFAULT 0,
    since_seq      BIGINT NOT NULL DEFAULT 0,
    failures       BIGINT NOT NULL DEFAULT 0,
    failing_since  BIGINT,
    next_at        BIGINT NOT NULL DEFAULT 0,
    lease_until    BIGINT NOT NULL DEFAULT 0,
    fence          BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX webhooks_account ON webhooks (account_id, created_at, seq);

-- What each of them is to be sent, and was: kept for three days. `status` is pending, delivered or dead.
CREATE TABLE webhook_messages (
    seq          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook      BIGINT NOT NULL,
    account_id   TEXT   NOT NULL,
    message_id   TEXT   NOT NULL,
    type         TEXT   NOT NULL,
    body         TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    status       TEXT   NOT NULL,
    attempts     BIGINT NOT NULL DEFAULT 0,
    next_at      BIGINT NOT NULL DEFAULT 0,
    first_at     BIGINT,
    last_at      BIGINT,
    http_status  BIGINT,
    excerpt      TEXT,
    error        TEXT
);
CREATE INDEX webhook_messages_due ON webhook_messages (webhook, next_at, seq) WHERE status = 'pending';
CREATE INDEX webhook_messages_order ON webhook_messages (webhook, seq) WHERE status = 'pending';
CREATE INDEX webhook_messages_list ON webhook_messages (webhook, created_at, seq);
CREATE INDEX webhook_messages_id ON webhook_messages (webhook, message_id);

-- A reader may stop between the items of a row.
ALTER TABLE event_places ADD COLUMN item BIGINT NOT NULL DEFAULT 9223372036854775807;
