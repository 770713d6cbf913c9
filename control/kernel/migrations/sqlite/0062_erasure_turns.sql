-- Erasures of users look for their actions, and no others: most actions have none.
CREATE INDEX actions_user ON actions (account_id, doc ->> '$.user', created_at, seq) WHERE doc ->> '$.user' IS NOT NULL;
-- Erasures read the messages of an account in order.
CREATE INDEX webhook_messages_account ON webhook_messages (account_id, seq);
-- Profiles that are to be made again because scans of their items were changed, or because an older release made them.
CREATE INDEX scan_profiles_marked ON scan_profiles (account_id, thng_id) WHERE rules_version IS NULL;
-- Until when an erasure waits after it failed. A lease that ends later is that of a worker: while it lasts, nobody takes another
-- erasure of the account.
ALTER TABLE erasures ADD COLUMN paused_until BIGINT NOT NULL DEFAULT 0;
CREATE INDEX erasures_of_account ON erasures (account_id, lease_until) WHERE status <> 'COMPLETED';
