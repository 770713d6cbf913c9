//! Statements and rows, for SQLite and Postgres.

pub mod rows;
pub mod serials;
pub mod tasks;
