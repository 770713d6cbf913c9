//! The fault campaign: real processes, faults of each kind, and a checker that reads the history afterwards.

pub mod history;
pub mod proxy;
