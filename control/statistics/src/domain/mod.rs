//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::events::domain::*;

pub mod counted_scan;
pub mod demo;
pub mod dimension;
pub mod labels;
pub mod moment;
pub mod parts;
pub mod periods;
pub mod reported_scan;
pub mod retention;
pub mod roll_ups;
pub mod rule_query;
pub mod stats_query;
pub mod unknown_query;
