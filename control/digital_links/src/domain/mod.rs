//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub mod pages;
pub mod plan;
