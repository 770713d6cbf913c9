//! How often an edge has led somebody through links that end after a number of scans.

use serde::{Deserialize, Serialize};

use crate::time::UnixMillis;

/// Most counts in a report: control writes them in one transaction, under the lock of the change log.
pub const MAX_COUNTS: usize = 200;

/// What an edge counted of some links.
///
/// A count is all that the edge ever counted of the link, so a report that comes again, or late, changes nothing: the greater
/// count is the newer one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReport {
    /// Name of the edge.
    pub edge: Box<str>,
    /// At most [`MAX_COUNTS`], each link once.
    pub counts: Vec<LimitedScans>,
}

/// What an edge counted of one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitedScans {
    /// Host of the short domain.
    pub domain: Box<str>,
    /// The folded short id.
    pub folded: Box<str>,
    /// When the link was made: another link of this short id has another count.
    pub created_at: UnixMillis,
    /// How many scans.
    pub scans: u32,
}
