//! The control plane: the API, its store, the change log that edges follow, and the intake of scans.
//!
//! Invariants: SQL stands only in `store`; rules stand in `domain` as plain functions; each operation
//! is one function in `service`, called by HTTP handlers and workers alike.

pub mod app;
pub mod cli;
pub mod config;
pub mod domain;
pub use ::kernel::error;
pub mod failure;
mod follow;
pub mod geo;
pub mod http;
pub mod live;
pub mod metrics;
pub mod publish;
pub mod run;
pub mod serve;
pub mod service;
pub mod store;
pub mod system;
pub mod telemetry;
pub mod tls;
pub mod worker;
