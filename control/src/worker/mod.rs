//! Work that no caller waits for.

pub mod ingest_scans;
pub mod run_jobs;
pub mod upkeep;
