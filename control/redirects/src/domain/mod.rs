//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::catalog::domain::*;

pub mod availability;
pub mod link_details;
pub mod redirection;
pub mod rules;
pub mod task;
pub mod withheld;
pub mod words;
