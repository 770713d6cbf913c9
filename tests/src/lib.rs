//! Shared test code: databases of both engines, and the parts of a running product.
//!
//! A function whose docs name no errors fails when what it starts or asks does not start, answer or end in time.

pub mod accounts;
pub mod campaign;
pub mod clickhouse;
pub mod clock;
pub mod db;
pub mod dns;
pub mod fingerprint;
pub mod fleet;
pub mod fleet_edge;
pub mod hist;
pub mod json;
pub mod killed;
pub mod kills;
pub mod mmdb;
pub mod mqtt;
pub mod pebble;
pub mod product;
pub mod promtool;
pub mod python;
pub mod raw_edge;
pub mod receiver;
pub mod redis;
pub mod sql;
pub mod wait;

/// Whether tests repeat what they do as often as they can: `WAYMARK_TEST_LONG`, which `tests/run --long` sets.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("WAYMARK_TEST_LONG").is_some()
}

/// A number of repetitions: in the gate, and in the long form.
#[must_use]
pub fn repetitions<T>(gate: T, long: T) -> T {
    if is_long() { long } else { gate }
}
