//! Counts the scans of links that end after a number of them (`maxScans`), on one edge.
//!
//! ```text
//! request path -> ScanLimits -> reports (Sink) -> control -> the record of the link -> every edge
//!                     +-> file `limits` in the data folder
//! ```
//!
//! # Invariants
//!
//! - An edge knows exactly what it counted itself, and of each other edge what control last heard. A link ends on it when both
//!   together reach `maxScans`. So one edge is exact, and several give at most so many scans too many as the others counted
//!   within the time of a report and its push.
//! - Counts only grow, and each is of one edge: a report that is lost, late or repeated does no harm, and a link never ends early.
//!   Control adds up what edges counted that have had no key for long; one that came back with its file would count it twice.
//! - After a restart an edge goes on from the greatest of its file and the record of the link. The file is a second old
//!   after a kill, or older where so many links are counted that it takes long to write, and whole after an orderly stop.
//! - Reports are seldom while many scans are left: one for each 1,024th part of what is left, and one a minute. So a link
//!   with many scans does not fill the change log, and near its end each scan is reported at once.
//! - Memory is bounded. Links that were not scanned for long are forgotten; their count is then what control knows.

mod counts;
mod file;
mod report;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared::redirect::{Redirect, RedirectKey};
use tokio::sync::Notify;

use self::counts::Counts;
pub use self::report::{NotTaken, Sink};

/// The counts of one edge. Only requests for links with a limit come here.
#[derive(Debug)]
pub struct ScanLimits {
    /// Name of the edge.
    edge: Arc<str>,
    counts: Mutex<Counts>,
    /// A report is due.
    due: Notify,
    /// Where the counts are kept.
    path: PathBuf,
}

impl ScanLimits {
    /// Reads what an earlier start left in `folder`; a file that cannot be read is ignored with a line in the log.
    #[must_use]
    pub fn open(folder: &Path, edge: Arc<str>) -> Self {
        let path = folder.join("limits");
        let counts = match file::load(&path, &edge) {
            Ok(counts) => counts,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Counts::default(),
            Err(error) => {
                tracing::error!(%error, file = %path.display(), "the saved counts of scans are ignored");
                Counts::default()
            }
        };
        Self { edge, counts: Mutex::new(counts), due: Notify::new(), path }
    }

    /// Counts a scan of a link and returns `true`; or `false`, and nothing is counted, where all scans of it are used up. A link
    /// without a limit has always one left, and nothing is counted.
    pub fn admit(&self, key: &RedirectKey, link: &Redirect) -> bool {
        let Some((most, known, others)) = self.limit(link) else { return true };
        let mut counts = self.lock();
        let count = counts.entry(key, link.created_at);
        count.see(known);
        let left = most.saturating_sub(others + u64::from(count.scans));
        if left == 0 {
            return false;
        }
        count.scans = count.scans.saturating_add(1);
        let is_due = count.is_due(left - 1);
        counts.changed(is_due.then_some(key));
        drop(counts);
        if is_due {
            self.due.notify_one();
        }
        true
    }

    /// Whether all scans of a link are used up.
    pub fn is_used_up(&self, key: &RedirectKey, link: &Redirect) -> bool {
        let Some((most, known, others)) = self.limit(link) else { return false };
        let own = self.lock().find(key, link.created_at).max(known);
        others + u64::from(own) >= most
    }

    /// Most scans of a link, what control knows of this edge, and what it knows of all others together.
    fn limit(&self, link: &Redirect) -> Option<(u64, u32, u64)> {
        let availability = link.availability.as_deref()?;
        let most = availability.max_scans?;
        let known = availability.scans.get(&*self.edge).copied().unwrap_or_default();
        Some((most.into(), known, availability.counted().saturating_sub(known.into())))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Counts are whole at each moment, also after a panic.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
