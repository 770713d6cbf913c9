//! Types and rules of linked identities, without I/O.

pub mod identity;
