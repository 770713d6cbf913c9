//! Bulk jobs: what they do, what they read, their chunks, leases and logs.
//!
//! Invariants: A chunk is done once: its lease is fenced by a term, and its result is written in the transaction
//! that ends it.
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod domain;
pub mod error;
pub mod http;
pub mod metrics;
pub mod service;
pub mod store;
pub mod worker;
