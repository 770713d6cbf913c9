//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::commissioning::domain::*;

pub mod assessment;
pub mod case;
