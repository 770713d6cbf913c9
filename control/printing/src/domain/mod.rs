//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub mod code;
pub mod input;
pub mod order;
pub mod order_draft;
pub mod reprint;
pub mod serials;
pub mod source;
