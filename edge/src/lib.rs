#![doc = include_str!("../README.md")]

mod admin;
#[doc(hidden)]
pub mod bench;
mod cache;
pub mod cli;
mod config;
mod connection;
mod disk;
mod domains;
mod edge;
mod framing;
mod handler;
mod images;
mod metrics;
mod pages;
mod plain;
mod proxy;
mod response;
mod route;
mod rules;
mod server;
mod sync;
mod withheld;
mod workers;

pub use backing::{self, EdgeError, EdgeKey, GeoDatabase};
pub use edge_tls::TlsCerts;
use resolver::redirect_head;

pub use self::{
    admin::{EdgeHandle, EdgeStatus, ScanCounts},
    config::{DiskLimits, EdgeConfig, Limits, Listeners},
    edge::{Connector, Edge, run},
    route::is_management,
    sync::State,
};
