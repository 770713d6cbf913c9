//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::actions::service::*;
pub use ::redirects::service::redirections;

pub mod commissioning;
