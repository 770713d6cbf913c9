//! The edge: answers scans from memory, and never waits for anything behind it on a hit.
//!
//! Invariants: a hit (a remembered unknown id is one) touches no network, no shared row and no lock of
//! ours; what an edge serves is never older than what it acknowledged; reads never go back; every
//! redirect becomes exactly one scan record on disk, within the bounds of `Limits`; an edge that was
//! live once serves on when everything behind it is gone (design: push, 3 and 4).
//!
//! Floors: `edge -> server -> handler -> {route, response, cache, backing, scans} -> shared`.

mod admin;
mod agents;
pub mod backing;
#[doc(hidden)]
pub mod bench;
mod cache;
pub mod cli;
mod config;
mod connection;
mod disk;
mod domains;
mod edge;
mod edge_key;
mod error;
mod framing;
mod geo;
mod handler;
mod images;
mod limiter;
mod metrics;
mod origins;
mod pages;
mod proxy;
mod response;
mod route;
mod rules;
mod scans;
mod server;
mod sync;
mod tls;
mod trust;
mod turns;
mod workers;

pub use self::{
    admin::{EdgeHandle, EdgeStatus, ScanCounts},
    config::{DiskLimits, EdgeConfig, Limits, Listeners},
    edge::{Connector, Edge, run},
    edge_key::EdgeKey,
    error::EdgeError,
    geo::GeoDatabase,
    sync::State,
    tls::TlsCerts,
};
