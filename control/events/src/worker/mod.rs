//! Background work that no caller waits for.

pub mod connections;
mod fan_out;
pub mod reactions;
pub mod webhooks;
