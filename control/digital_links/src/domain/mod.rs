//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub mod assumed_request;
pub mod pages;
pub mod plan;
