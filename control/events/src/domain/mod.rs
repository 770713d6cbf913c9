//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::actions::domain::*;

pub mod event_filter;
pub mod reaction;
pub mod reaction_effect;
pub mod subscription_filter;
pub mod topic;
pub mod webhook;
pub mod webhook_tries;
