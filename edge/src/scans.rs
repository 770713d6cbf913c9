//! Recording of scans: a bounded ring, a writer to disk, shipping in batches (README, "Scan spool").
//!
//! The request path only pushes into the ring: no await, no task, no wake-up.

mod asked;
mod boot;
mod degrade;
mod record;
mod reserve;
mod ship;
mod spool;
mod writer;

use std::{
    net::IpAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use crossbeam_queue::ArrayQueue;
use http::HeaderValue;
use shared::time::UnixMillis;
use tokio_util::sync::CancellationToken;

pub(crate) use self::asked::Asked;
use crate::{backing::Backing, config::EdgeConfig, error::EdgeError, metrics::Metrics, rules::EdgeRule};

/// Scans that may wait for the writer: at 100,000 redirects a second, 0.65 s of a stalled disk.
const RING: usize = 65_536;

/// A redirect as the request path hands it over: one allocation for its texts.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) at: UnixMillis,
    pub(crate) ip: IpAddr,
    /// Host, folded short id, entry URL, user agent, referer and language, one behind the other.
    pub(crate) texts: Box<str>,
    /// Where each but the first begins in `texts`; absent ones are empty.
    pub(crate) cuts: [u16; 5],
    /// The rule by which it went, if one fired.
    pub(crate) fired: Option<Box<Fired>>,
}

/// A rule that decided a redirect, as the request path hands it over.
#[derive(Debug)]
pub(crate) struct Fired {
    pub(crate) rule: Arc<EdgeRule>,
    /// The `Location` that was sent.
    pub(crate) location: HeaderValue,
}

/// Scans between the request path and the writer.
#[derive(Debug)]
struct Ring {
    scans: ArrayQueue<Scan>,
    /// Lost since a segment was begun; their numbers are left out, so that control sees the gap.
    lost: AtomicU64,
}

/// The request path's end of the ring.
#[derive(Debug)]
pub(crate) struct Recorder {
    ring: Arc<Ring>,
    metrics: Arc<Metrics>,
}

impl Recorder {
    /// Records one redirect; a full ring drops it and counts the loss.
    pub(crate) fn record(&self, scan: Scan) {
        if self.ring.scans.push(scan).is_ok() {
            self.metrics.scans_recorded.inc();
        } else {
            self.ring.lost.fetch_add(1, SeqCst);
            self.metrics.scans_lost.inc();
        }
    }
}

/// The tasks behind the ring.
#[derive(Debug)]
pub(crate) struct Scans {
    writer: writer::Writer,
    spool: Arc<spool::Spool>,
}

/// Opens the spool: takes a new boot number, finds what earlier boots left, starts the writer's thread.
///
/// # Errors
/// The folder cannot be created, read or written.
pub(crate) fn open(
    folder: &Path,
    config: &EdgeConfig,
    metrics: &Arc<Metrics>,
    now: UnixMillis,
) -> Result<(Recorder, Scans), EdgeError> {
    let ring = Arc::new(Ring { scans: ArrayQueue::new(RING), lost: AtomicU64::new(0) });
    let spool = Arc::new(spool::Spool::open(folder, config, metrics.clone(), now)?);
    let writer = writer::Writer::start(spool.clone(), ring.clone(), metrics.clone())
        .map_err(|source| EdgeError::Storage { path: folder.to_owned(), source })?;
    Ok((Recorder { ring, metrics: metrics.clone() }, Scans { writer, spool }))
}

impl Scans {
    /// Ships until `shutdown`, then empties the ring onto the disk and tries to ship that too.
    ///
    /// `shutdown` comes after the last request was answered.
    pub(crate) async fn run<B: Backing>(
        self,
        config: Arc<EdgeConfig>,
        backing: Arc<B>,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) {
        let mut shipper = ship::Shipper::new(config, backing, metrics, self.spool);
        shutdown.run_until_cancelled(shipper.run()).await;
        let writer = self.writer;
        if tokio::task::spawn_blocking(move || writer.stop()).await.is_err() {
            tracing::error!("the writer of scans panicked");
        }
        shipper.finish().await;
    }
}
