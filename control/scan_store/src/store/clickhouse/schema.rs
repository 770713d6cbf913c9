//! The tables in ClickHouse, made at the start on one node.
//!
//! `scans` has a row for each version of a scan, of which `FINAL` shows the last: rows with the same key are the same scan.
//! That makes it harmless to store a scan twice. `scan_batches` holds for each part of a batch the creation time and the
//! number that its scans have, before they are stored: whoever stores it again takes the same.
//!
//! The key is (account, created_at, seq), the order in which an account's scans are listed, exported, counted, erased and
//! removed: each of these reads a range of it, and a page reads its granules only. The position tells scans of an account
//! apart. Scans of a Thng are found by a bloom filter for each 8,192 rows, which takes some 1.2 bytes a scan: a page reads the
//! filters of the account's months and then the granules of the scans. With the Thng in front of the time each page of an
//! account would read its whole month. A projection in the other order would do for both, but `FINAL` uses none, and it would hold
//! the Thng of each scan again. Filters by product, project or place read the facets of the account in order until a page is
//! full; an index on facets would not do, because versions of a scan differ in them: a server that uses it under `FINAL` may pass
//! over the last version, and show one before.
//!
//! A scan that is deleted gets a last version without its document, which stays until retention: an insert or a rewrite that
//! ends later does not bring it back.
//!
//! What was rewritten or deleted leaves the disk with the next merge of its rows. The settings force one of a month a day after
//! its last change: of the running month, or one of which something is cut each day, when that is over.

use std::time::{Duration, Instant};

use kernel::store::StoreError;

use super::{client::Client, params::Params};

/// Statements of the start, in order.
const SCHEMA: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS scans (month Int32, account LowCardinality(String), thng String CODEC(ZSTD(1)), \
     created_at Int64 CODEC(Delta, ZSTD(1)), seq Int64 CODEC(Delta, ZSTD(1)), \
     timestamp Int64 CODEC(Delta, ZSTD(1)), key FixedString(12), version UInt32 CODEC(ZSTD(1)), \
     shape LowCardinality(String), agent LowCardinality(Nullable(String)), place LowCardinality(Nullable(String)), \
     referer LowCardinality(Nullable(String)), language LowCardinality(Nullable(String)), \
     rule LowCardinality(Nullable(String)), ip String CODEC(ZSTD(1)), short_id Nullable(String) CODEC(ZSTD(1)), \
     entry Nullable(String) CODEC(ZSTD(1)), redirect_url Nullable(String) CODEC(ZSTD(1)), \
     shape_facets Array(LowCardinality(String)), place_facets Array(LowCardinality(String)), \
     INDEX keys key TYPE bloom_filter(0.001) GRANULARITY 1, INDEX thngs thng TYPE bloom_filter(0.01) GRANULARITY 1) \
     ENGINE = ReplacingMergeTree(version) PARTITION BY month ORDER BY (account, created_at, seq) \
     SETTINGS non_replicated_deduplication_window = 1000, min_age_to_force_merge_seconds = 86400, \
     min_age_to_force_merge_on_partition_only = 1",
    "CREATE TABLE IF NOT EXISTS scan_batches (edge String, boot UInt64, first UInt64, begin UInt64, end UInt64, number Int64, \
     created_at Int64, stored_at DateTime DEFAULT now()) ENGINE = MergeTree ORDER BY (edge, boot, begin, number) \
     TTL stored_at + INTERVAL 90 DAY SETTINGS non_replicated_deduplication_window = 1000",
];

/// Reads what every statement needs: it fails where a table or a column is missing.
const CHECK: &str = "SELECT toUInt64(count()) FROM scans WHERE month = 0 AND version = 0 AND notEmpty(place_facets) \
    AND (SELECT count() FROM scan_batches WHERE edge = '' AND number = 0 AND created_at = 0) > 0";

/// How long the start waits for a statement.
const LIMIT: Duration = Duration::from_secs(30);

/// How long the start waits for a server that is away, as one that starts at the same time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Makes the tables where they are missing, once the server answers.
pub(super) async fn prepare(client: &Client) -> Result<(), StoreError> {
    let (begun, mut pause) = (Instant::now(), Duration::from_millis(250));
    loop {
        match make(client).await {
            Err(StoreError::Unavailable(error)) if begun.elapsed() < PATIENCE => {
                tracing::warn!(%error, "ClickHouse is away; it is asked again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            made => return made,
        }
    }
}

/// The tables of a cluster are made by whoever runs it.
async fn make(client: &Client) -> Result<(), StoreError> {
    if client.cluster().is_none() {
        for sql in SCHEMA {
            client.query(sql, &Params::default(), LIMIT).await?;
        }
    }
    client.query(CHECK, &Params::default(), LIMIT).await.map(drop)
}
