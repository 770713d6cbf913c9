//! Background work that no caller waits for.

pub mod audit;
pub mod ingest_scans;
pub mod key_uses;
pub mod move_scans;
pub mod rebuild_profiles;
pub mod scan_retention;
pub mod upkeep;
pub mod write_probe;

pub use ::events::worker::{connections, reactions, webhooks};
pub use ::jobs::worker as run_jobs;
pub use ::mail::worker as mails;
