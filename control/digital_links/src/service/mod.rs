//! Operations: one function each, called by other subjects and by the worker.
//!
//! Functions fail when the database does; their docs list other errors only.

mod apply;
pub mod check;
mod find;
mod follow;
pub mod preview;
mod steps;
mod targets;

pub use self::{
    find::find_thng,
    follow::{follow_domain, follow_left, follow_product, follow_thng},
    steps::step,
};
