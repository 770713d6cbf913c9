//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::applications::domain::*;

pub mod batch;
pub mod collection;
pub mod digital_links;
pub mod file;
pub mod place;
pub mod property_body;
pub mod public_write;
pub mod resource;
pub mod resource_body;
pub mod series;
