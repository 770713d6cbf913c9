//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::redirects::domain::*;

pub mod hosted_account;
pub mod platform_key;
pub mod platform_take_down;
pub mod quota_change;
