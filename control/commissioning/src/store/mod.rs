//! Statements and rows, for SQLite and Postgres.

pub use ::actions::store::*;

pub mod commissions;
