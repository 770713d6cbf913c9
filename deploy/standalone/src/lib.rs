//! Waymark in one process: control, one edge and SQLite behind `waymark up`, and the operator's tools.
//!
//! Invariants: settings are checked before a port is bound; a key is shown once and stored as a hash;
//! the edge stops first and the database last. The tools speak to the public API alone, save `keys`
//! and `secrets`, for which there is no API.

mod admin;
pub mod backing;
pub mod banner;
pub mod cli;
pub mod config;
pub mod data_dir;
pub mod dev_tls;
mod serve;
pub mod tools;
pub mod up;

pub use control::{failure, failure::Failure, service::seed, system};

pub use self::{
    config::Config,
    up::{Running, up},
};
