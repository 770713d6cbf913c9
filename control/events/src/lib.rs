//! Webhooks, reactions, connections and what subscribers of the event log may see.
//!
//! Invariants: A delivery is planned in the transaction of its event. A subscriber sees only what
//! its key may read.

pub mod channels;
mod dispatch;
pub mod domain;
pub mod error;
pub mod feed;
pub mod http;
pub mod live;
pub mod messages;
pub mod metrics;
pub mod service;
pub mod store;
pub mod worker;

pub use ::egress;
