//! Statements and rows, for SQLite and Postgres.

pub use ::kernel::store::*;
pub use ::redirects::store::*;

pub mod calls;
pub mod certificates;
pub mod edge_keys;
pub mod edge_leases;
pub mod publishers;
pub mod snapshot;
