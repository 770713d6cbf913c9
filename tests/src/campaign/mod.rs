//! The fault campaign: real processes, faults of each kind, and a checker that reads the history afterwards.

pub mod disk;
pub mod drain;
pub mod faults;
pub mod history;
pub mod load;
pub mod postgres;
pub mod proxy;
pub mod run;
pub mod stability;
pub mod steady;
pub mod world;
