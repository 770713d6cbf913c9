//! Secrets that all replicas share, encrypted in the database under keys outside of it.
//!
//! Keys of applications and Things, signatures of webhooks, URLs of files and page tokens are derived from them.
//!
//! Invariants: No secret is stored as it is once a release with this crate has started. All values decrypt with the
//! keys of the file, or nothing is written and the start is refused.

pub mod keys;
mod load;
pub mod store;

pub use self::load::{Rotated, SecretsError, find, find_keys, load, new_key_line, rotate};
