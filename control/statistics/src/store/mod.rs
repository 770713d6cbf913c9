//! Statements and rows, for SQLite and Postgres.

pub use ::events::store::*;

pub mod backfill;
pub mod devices;
pub mod project_counts;
pub mod roll_up_writes;
pub mod scan_limits;
pub mod scan_statistics;
pub mod unknown_scans;
