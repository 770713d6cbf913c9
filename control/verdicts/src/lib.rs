//! The rules by which items are judged: what counts as a copy or as being outside of its markets, with every reason and
//! its figures; and what people decide on it.
//!
//! Invariants: All is plain functions from facts to findings. Facts, time and settings are arguments, so that the rules
//! can be measured without a database (`tests/simulator`). Whatever may change a verdict raises
//! [`domain::assessment::RULES_VERSION`].

pub mod domain;
