//! From a committed change to every edge: the writer, the change stream and who follows it.

pub mod hub;
mod link;
mod members;
pub mod pace;
pub mod publisher;
pub mod publisher_stats;
mod rebuild;
pub mod replica;
pub mod ring;
mod scripts;
mod session;
mod spread;
mod timing;
mod view;
pub mod writer;
