//! Distribution of committed events to subscribers, by the event feed.

pub use ::events::{channels, egress, feed, messages};
pub use ::push::{hub, publisher, publisher_stats, replica};
pub use ::redirects::writer;
