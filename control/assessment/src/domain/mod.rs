//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::verdicts::domain::*;

pub mod photo;
pub mod report;
