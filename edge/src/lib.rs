#![doc = include_str!("../README.md")]

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
mod plain;
mod proxy;
mod read_budget;
mod response;
mod route;
mod rules;
mod server;
mod sync;
mod tls;
mod trust;
mod unknown;
mod withheld;
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
