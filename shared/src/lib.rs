//! What the edge and the control plane hold in common: identifiers, short URLs, the wire.
//!
//! Invariants of this crate: no I/O, no clock, no randomness, no async runtime. Time and random bytes
//! are arguments; every function gives the same answer for the same input.

pub mod access_token;
pub mod certificate;
pub mod client_address;
pub mod commission;
pub mod exposition;
pub mod filter;
pub mod geo;
pub mod id;
pub mod identifier;
pub mod negotiate;
pub mod problem;
pub mod redirect;
pub mod rules;
pub mod settings;
pub mod short_id;
pub mod short_url;
pub mod standing;
pub mod target;
pub mod time;
pub mod variables;
pub mod wire;
