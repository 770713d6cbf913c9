//! Accounts, operators and what they may do, keys, and the audit trail.
//!
//! Invariants: Passwords and keys are stored as hashes. Every query names the account.
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
