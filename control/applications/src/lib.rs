//! Projects, their applications, and the users of applications.
//!
//! Invariants: passwords, keys and codes are stored as hashes. Every query names the account. A code goes to the mailbox
//! and never to the caller, unless the account says otherwise.
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
pub mod worker;
