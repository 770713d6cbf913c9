//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::actions::domain::*;

pub mod job;
pub mod job_file;
pub mod job_input;
pub mod job_lines;
