//! Statements and rows, for SQLite and Postgres.

pub mod claims;
pub mod domains;
