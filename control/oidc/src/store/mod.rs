//! The tables of sign-ins by a provider.

pub use ::kernel::store::*;

pub mod identities;
pub mod used_states;
