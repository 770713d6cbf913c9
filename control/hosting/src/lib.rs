//! What the platform operator does, above all accounts: suspensions, take-downs, keys of the platform.
//!
//! Invariants: What is withheld is a short list that every edge holds whole: one change of the log reaches every link
//! that it concerns. The list and the log change in one transaction. A key of the platform is for `/platform/` alone, and
//! no other key reaches anything there. Each change leaves an entry in the audit trail of the account that it concerns; one
//! that concerns no single account, in the trail of the platform.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
pub mod worker;
