//! The way of committed changes to edges: the change stream, the fleet that follows it, and the view in Redis.
//!
//! Invariants: Leases go by the clock of the database. A publisher that lost its lease is fenced off by its term.

pub mod certificates;
pub mod edge_keys;
pub mod error;
pub mod http;
pub mod hub;
mod link;
mod members;
pub mod metrics;
pub mod publisher;
pub mod publisher_stats;
mod rebuild;
pub mod replica;
pub mod ring;
mod scripts;
mod session;
mod spread;
pub mod store;
mod timing;
mod view;
mod welcomes;
