//! Accounts, operators, projects, applications and application users.
//!
//! Invariants: Passwords and keys are stored as hashes. Every query names the account.

pub mod domain;
pub mod http;
pub mod service;
pub mod store;

pub use ::kernel::error;
