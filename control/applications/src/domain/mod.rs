//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::tenants::domain::*;

pub mod app_user;
pub mod application;
pub mod demo;
pub mod project;
pub mod user_codes;
