//! Statements and rows, for SQLite and Postgres; and in [`clickhouse`] for ClickHouse.
//!
//! Statements name the tables `scans`, `scan_texts` and `scan_facets`, which stay empty; [`months::of_month`] puts those of
//! a month in their place.

mod append;
mod clickhouse;
mod delete;
mod describe;
mod erase_texts;
mod filter;
mod find;
mod list;
mod look_up;
mod loose_texts;
mod months;
mod open;
mod pass_on;
mod plan;
mod retention;
mod rewrite;
mod rows;
mod seek;
mod sql_scans;
mod text_cache;
mod texts;
mod write_postgres;
mod write_sqlite;

pub use self::{
    clickhouse::ClickHouseScans,
    open::{check, file_of, move_scans, open, open_existing, open_existing_in, open_in},
    sql_scans::SqlScans,
};
