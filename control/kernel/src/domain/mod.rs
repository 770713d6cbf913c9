//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use permissions::{access, action_names, api_key, permission, role, subject};

pub mod action;
pub mod authority;
pub mod body;
pub mod common;
pub mod device;
pub mod event;
pub mod facets;
pub mod filter;
pub mod grant;
pub mod limits;
pub mod listing;
pub mod location;
pub mod members;
pub mod named;
pub mod page;
pub mod property;
pub mod quota;
pub mod reference;
pub mod scan_source;
pub mod scopes;
