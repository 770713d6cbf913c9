//! Statements and rows, for SQLite and Postgres.

pub use ::tenants::store::*;

pub mod app_users;
pub mod applications;
pub mod idle_users;
pub mod password_resets;
pub mod projects;
pub mod removed_applications;
pub mod user_keys;
