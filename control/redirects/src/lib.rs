//! Redirections, their rules, the tasks of batches, and the change log that edges follow.
//!
//! Invariants: Revisions are gapless and in the order of commits: the row of the log is locked until the
//! transaction ends.
//!
//! A function of the store whose docs name no errors fails when the database does.

pub mod domain;
pub mod error;
pub mod fill_words;
pub mod http;
pub mod metrics;
pub mod service;
pub mod store;
pub mod writer;

pub use kernel::service::edges;
