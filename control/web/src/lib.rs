#![doc = include_str!("../README.md")]

pub mod access;
pub mod api_error;
pub mod bodies;
pub mod bulk;
pub mod extract;
pub mod known;
pub mod known_members;
pub mod limiter;
pub mod listing;
pub mod location;
pub mod once;
pub mod openapi;
pub mod permits;
pub mod rate_limit;
pub mod request_info;
pub mod wire;
