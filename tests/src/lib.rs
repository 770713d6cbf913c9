//! Shared test code: databases of both engines, and the parts of a running product.

pub mod campaign;
pub mod db;
pub mod fingerprint;
pub mod fleet;
pub mod fleet_edge;
pub mod mmdb;
pub mod mqtt;
pub mod product;
pub mod promtool;
pub mod python;
pub mod raw_edge;
pub mod redis;
