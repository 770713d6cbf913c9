//! From a committed change to every edge: the writer, the change stream and who follows it.

pub mod hub;
pub mod writer;
