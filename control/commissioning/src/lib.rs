//! Commissioning at the factory: the states of a Thng, and the steps between them.
//!
//! Invariants: A step is refused with every reason that stands against it, and then changes nothing. State, product
//! and the action that records the step are written in one transaction.

pub mod domain;
pub mod error;
pub mod http;
pub mod service;
pub mod store;
