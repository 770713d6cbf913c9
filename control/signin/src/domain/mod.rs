//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::tenants::domain::*;

pub mod authenticator;
pub mod recovery_code;
pub mod session;
pub mod sign_in_body;
pub mod throttle;
pub mod token;
