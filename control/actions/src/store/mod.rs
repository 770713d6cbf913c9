//! Statements and rows, for SQLite and Postgres.

pub use ::catalog::store::*;

pub mod action_lists;
pub mod action_types;
pub mod actions;
pub mod merged_lists;
pub mod scan_charges;
pub mod scan_moves;
pub mod scans;
