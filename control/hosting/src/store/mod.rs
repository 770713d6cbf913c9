//! Statements and rows, for SQLite and Postgres. They are those of the platform: no account confines them.

pub use ::redirects::store::*;

pub mod hosted_accounts;
pub mod platform_keys;
pub mod withholdings;
