//! Statements and rows, for SQLite and Postgres.
//!
//! Statements name the tables `scans` and `scan_texts`, which stay empty; [`months::of_month`] puts those of a month in
//! their place.

mod append;
mod delete;
mod describe;
mod filter;
mod find;
mod list;
mod months;
mod open;
mod rows;
mod sql_scans;
mod texts;
mod write_postgres;
mod write_sqlite;

pub use self::{
    open::{check, file_of, open},
    sql_scans::SqlScans,
};
