//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::tenants::service::*;

pub mod activation;
pub mod applications;
pub mod logins;
pub mod projects;
pub mod registration;
pub mod removal;
pub mod user_passwords;
pub mod users;
