//! Statements and rows, for SQLite and Postgres.

pub mod authorities;
pub mod certificates;
pub mod clock;
pub mod published;
