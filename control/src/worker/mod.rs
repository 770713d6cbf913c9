//! Work that no caller waits for.

pub mod connections;
pub mod ingest_scans;
pub mod run_jobs;
pub mod upkeep;
pub mod webhooks;
