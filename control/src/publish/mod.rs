//! From a committed change to every edge: the writer, the change stream and who follows it.

pub mod hub;
mod link;
pub mod publisher;
pub mod publisher_stats;
mod rebuild;
mod scripts;
mod view;
pub mod writer;
