//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub mod columns;
pub mod ids;
pub mod month;
pub mod scan_server;
