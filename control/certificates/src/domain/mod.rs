//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub mod account;
pub mod certificate;
pub mod chain;
