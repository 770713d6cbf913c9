//! Statements and rows, for SQLite and Postgres.

pub mod copies;
pub mod erasures;
pub mod personal_actions;
pub mod unknown_networks;
