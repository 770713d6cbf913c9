//! Work that no caller waits for.

pub mod geo_ip;
pub mod ingest_scans;
pub mod upkeep;
