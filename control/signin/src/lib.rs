//! Sign-in of people: passwords, second factors and sessions of operators, for the console.
//!
//! Invariants: A session is a key of its operator that nobody sees. The cookie is a random token, and the key is derived
//! from it with a secret of the server: so roles, limits, revocation and the audit trail are those of keys, and a stolen
//! cookie is no API key. The cookie counts below `/console/api/` only, for requests of the same origin only (`http::gate`).
//! Passwords, recovery codes and codes of resets are stored as hashes, secrets of authenticators encrypted. Each sign-in
//! computes one hash of a password, whether somebody has the address or not.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
