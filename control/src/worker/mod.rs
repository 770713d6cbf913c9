//! Background work that no caller waits for.

pub mod connections;
mod fan_out;
pub mod ingest_scans;
pub mod reactions;
pub mod rebuild_profiles;
pub mod upkeep;
pub mod webhooks;
pub mod write_probe;

pub use ::jobs::worker as run_jobs;
