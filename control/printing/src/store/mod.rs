//! Statements and rows, for SQLite and Postgres.

pub mod chunks;
pub mod codes;
pub mod leases;
pub mod orders;
pub mod serial_numbers;
