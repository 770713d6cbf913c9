//! Statements and rows, for SQLite and Postgres.

pub use ::actions::store::*;
pub use ::redirects::store::redirections;

pub mod job_chunks;
pub mod job_leases;
pub mod job_logs;
pub mod jobs;
