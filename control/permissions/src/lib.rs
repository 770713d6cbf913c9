//! Who may do what: kinds of keys, the permission table, roles of operators, names of types of actions, and how far a scan is
//! believed by the key that reported it.
//!
//! Invariants: All is plain functions from data to data, without I/O, clock or randomness. What a kind of key may do is
//! [`permission`]'s table alone; a role ([`role`]) is a set of its cells, so it never reaches further than its kind of
//! key. Subjects reach these modules as `kernel::domain`.

pub mod access;
pub mod action_names;
pub mod api_key;
pub mod permission;
pub mod role;
pub mod scan_source;
pub mod subject;
