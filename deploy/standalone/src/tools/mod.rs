//! The operator's tools.

pub mod audit;
pub mod backup;
pub mod client;
pub mod demo;
pub mod export;
pub mod import;
pub mod jobs;
pub mod keys;
pub mod links;
pub mod manual;
pub mod operators;
pub mod patience;
pub mod platform;
pub mod print;
pub mod qr;
pub mod secrets;
mod shown;
pub mod status;
