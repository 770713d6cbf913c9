//! Statements and rows, for SQLite and Postgres.

pub use ::catalog::store::*;

pub mod domains;
pub mod log;
pub mod pages;
mod redirect_status;
mod redirection_columns;
pub mod redirection_details;
pub mod redirection_fill;
pub mod redirection_lists;
pub mod redirection_writes;
pub mod redirections;
pub mod rules;
pub mod tasks;
