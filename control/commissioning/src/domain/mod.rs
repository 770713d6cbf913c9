//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::actions::domain::*;

pub mod commissioning;
pub mod commissioning_body;
