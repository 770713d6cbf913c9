//! The store and the operations on it, on both engines.

mod filters;
mod imports;
mod paging;
mod races;
pub(crate) mod redirections;
mod scans;
mod stream;
