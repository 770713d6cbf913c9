//! Distribution of committed events to subscribers, by the event feed.

mod dispatch;
pub mod feed;
pub mod messages;

pub use ::events::{channels, egress};
pub use ::push::{hub, publisher, publisher_stats, replica};
pub use ::redirects::writer;
