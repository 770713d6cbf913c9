-- Tables of scans on a cluster of ClickHouse, for WAYMARK_SCANS_URL=clickhouse://…/waymark?cluster=waymark.
--
-- Run it once, as an administrator, on one server: clickhouse-client --multiquery < cluster.sql
-- Replace the name of the cluster (waymark) where yours is another. The macros {shard} and {replica} must be set on
-- every server. On one server without a cluster nothing of this is needed: Waymark makes the tables itself.

CREATE DATABASE IF NOT EXISTS waymark ON CLUSTER waymark;

-- A row for each version of a scan; rows with the same key are the same scan.
CREATE TABLE IF NOT EXISTS waymark.scans_local ON CLUSTER waymark
(
    month Int32,
    account LowCardinality(String),
    thng String CODEC(ZSTD(1)),
    created_at Int64 CODEC(Delta, ZSTD(1)),
    seq Int64 CODEC(Delta, ZSTD(1)),
    timestamp Int64 CODEC(Delta, ZSTD(1)),
    key FixedString(12),
    version UInt32 CODEC(ZSTD(1)),
    shape LowCardinality(String),
    agent LowCardinality(Nullable(String)),
    place LowCardinality(Nullable(String)),
    referer LowCardinality(Nullable(String)),
    language LowCardinality(Nullable(String)),
    rule LowCardinality(Nullable(String)),
    ip String CODEC(ZSTD(1)),
    short_id Nullable(String) CODEC(ZSTD(1)),
    entry Nullable(String) CODEC(ZSTD(1)),
    redirect_url Nullable(String) CODEC(ZSTD(1)),
    shape_facets Array(LowCardinality(String)),
    place_facets Array(LowCardinality(String)),
    INDEX keys key TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX thngs thng TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/waymark/scans', '{replica}', version)
PARTITION BY month
ORDER BY (account, created_at, seq)
SETTINGS min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;

-- All versions of a scan are on one shard.
CREATE TABLE IF NOT EXISTS waymark.scans ON CLUSTER waymark AS waymark.scans_local
ENGINE = Distributed(waymark, waymark, scans_local, cityHash64(account, thng));

-- Creation time and number of each batch.
CREATE TABLE IF NOT EXISTS waymark.scan_batches_local ON CLUSTER waymark
(
    edge String,
    boot UInt64,
    first UInt64,
    begin UInt64,
    end UInt64,
    number Int64,
    created_at Int64,
    stored_at DateTime DEFAULT now()
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/waymark/scan_batches', '{replica}')
ORDER BY (edge, boot, begin, number)
TTL stored_at + INTERVAL 90 DAY;

CREATE TABLE IF NOT EXISTS waymark.scan_batches ON CLUSTER waymark AS waymark.scan_batches_local
ENGINE = Distributed(waymark, waymark, scan_batches_local, cityHash64(edge, boot));

-- What was written is on a majority of the replicas of its shard before Waymark hears so, and every read sees it. Without
-- these settings a batch that comes again could be stored twice.
CREATE SETTINGS PROFILE IF NOT EXISTS waymark ON CLUSTER waymark SETTINGS
    distributed_foreground_insert = 1,
    insert_quorum = 'auto',
    insert_quorum_parallel = 0,
    select_sequential_consistency = 1,
    distributed_ddl_task_timeout = 600;

CREATE USER IF NOT EXISTS waymark ON CLUSTER waymark IDENTIFIED WITH sha256_password BY 'CHANGE-THIS' SETTINGS PROFILE waymark;
GRANT ON CLUSTER waymark SELECT, INSERT, ALTER DELETE, ALTER UPDATE ON waymark.* TO waymark;
GRANT ON CLUSTER waymark SELECT ON system.parts TO waymark;
GRANT ON CLUSTER waymark CLUSTER, REMOTE ON *.* TO waymark;
