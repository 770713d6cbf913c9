//! Distribution of committed changes: to edges by the writer and the change stream, to subscribers by the event feed.

pub mod channels;
mod dispatch;
pub mod egress;
pub mod feed;
pub mod hub;
mod link;
mod members;
pub mod messages;
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
pub use ::redirects::{batch_size, writer};
