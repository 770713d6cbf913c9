//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub mod cut;
pub mod erasure;
pub mod network;
