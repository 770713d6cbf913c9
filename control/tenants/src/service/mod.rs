//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::kernel::service::*;

pub mod attempts;
pub mod audit;
pub mod first_keys;
pub mod invitations;
pub mod keys;
pub mod operators;
pub mod passwords;
pub mod quotas;
pub mod roles;
pub mod scopes;
pub mod tenants;
