//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::actions::domain::*;
pub use ::assessment::domain::*;
pub use ::events::domain::*;
pub use ::jobs::domain::*;
pub use ::redirects::domain::*;
