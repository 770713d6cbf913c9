//! Statements and rows, for SQLite and Postgres.

pub mod change_leases;
pub mod changes;
pub mod conflicts;
pub mod former;
