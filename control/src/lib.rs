#![doc = include_str!("../README.md")]

pub mod cli;
pub mod composition;
pub mod config;
pub mod error;
pub mod failure;
mod follow;
pub mod geo;
pub mod http;
pub mod metrics;
pub mod run;
pub mod secret_key_file;
pub mod serve;
pub mod service;
pub mod state;
pub mod system;
pub mod telemetry;
pub mod tls;
pub mod worker;
