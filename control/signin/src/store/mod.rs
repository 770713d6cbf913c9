//! Statements and rows, for SQLite and Postgres.

pub use ::tenants::store::*;

pub mod operator_authenticators;
pub mod operator_networks;
pub mod operator_passwords;
pub mod operator_resets;
pub mod operator_sessions;
pub mod recovery_codes;
pub mod sign_in_attempts;
pub mod sign_in_links;
