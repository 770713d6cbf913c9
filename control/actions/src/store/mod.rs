//! Statements and rows, for SQLite and Postgres.

pub use ::kernel::store::*;

pub mod action_types;
pub mod actions;
pub mod scans;
