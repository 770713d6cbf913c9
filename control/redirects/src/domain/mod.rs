//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::catalog::domain::*;

pub mod assumed_scan;
pub mod availability;
pub mod link_details;
pub mod link_patch;
pub mod preview;
pub mod redirection;
pub mod rules;
pub mod task;
pub mod words;
