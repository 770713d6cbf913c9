//! Statements and rows, for SQLite and Postgres.

pub mod work;
