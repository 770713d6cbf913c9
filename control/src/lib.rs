//! The control plane: the API, its store, the change log that edges follow, and the intake of scans.
//!
//! Invariants: SQL stands only in `store`; rules stand in `domain` as plain functions; each operation
//! is one function in `service`, called by HTTP handlers and workers alike.

pub mod domain;
pub mod error;
pub mod http;
pub mod publish;
pub mod service;
pub mod store;
pub mod worker;
