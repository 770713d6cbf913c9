//! The store and the operations on it, on both engines.

mod event_log;
mod filters;
mod imports;
mod job_turns;
mod paging;
mod races;
pub(crate) mod redirections;
mod scans;
mod stream;
