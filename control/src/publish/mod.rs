//! Distribution of committed changes: to edges by the writer and the change stream, to subscribers by the event feed.

pub mod channels;
pub mod feed;
pub mod hub;
mod link;
mod members;
pub mod messages;
pub mod outward;
pub mod pace;
pub mod publisher;
pub mod publisher_stats;
mod rebuild;
pub mod replica;
pub mod ring;
mod scripts;
mod session;
mod spread;
mod telling;
mod timing;
mod view;
pub mod writer;
