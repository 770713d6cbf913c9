//! Statements and rows, for SQLite and Postgres.

pub use ::kernel::store::*;

pub mod accounts;
pub mod audit_trail;
pub mod domain_files;
pub mod operator_keys;
pub mod operators;
pub mod projects;
pub mod quota_counts;
pub mod quota_limits;
pub mod roles;
pub mod tenants;
pub mod user_attempts;
pub mod withheld;
pub mod writers;
