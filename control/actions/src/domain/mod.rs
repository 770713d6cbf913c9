//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::catalog::domain::*;

pub mod action_draft;
pub mod action_type;
pub mod context;
pub mod personal;
pub mod scan;
pub mod scan_charges;
