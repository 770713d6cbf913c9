//! Actions and scans: drafts of actions, custom types, the context of a scan, and how they are stored.
//!
//! Invariants: A scan is stored once however often it is sent: its id follows from its content. The source of a
//! scan is set by the server, never by a client.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
