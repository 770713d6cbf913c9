//! Recording of the scans of an edge: bounded buffers, a spool on disk, and shipping to control in batches.
//!
//! ```text
//! Recorder -> buffers -> writer (thread) -> segment files -> shipper -> Intake (control)
//!                            +-> sums -> reserve              (when the disk budget is used up)
//! ```
//!
//! # Invariants
//!
//! - The request path encodes a scan into a buffer of its core: no await, no task, no wake-up, no allocation. The writer
//!   takes a buffer by exchanging it for an empty one. A redirect never waits for the disk.
//! - Records of accounts with `none` are redacted before they are written or sent.
//! - Scans of one thread are numbered in order; those of two threads within 5 ms may change places.
//! - A scan has a boot number and a sequence number, and control stores each pair once. The boot number is on disk
//!   before it is first used. Lost scans have numbers too, so that control sees the gap.
//! - Batches of up to 1,000 are shipped in order, one at a time, until they are acknowledged.
//! - A kill loses what was not yet written: the writer empties the buffers every 5 ms. A power loss also loses
//!   what was not yet synced; syncs are 200 ms apart.
//! - Bytes on disk stay within [`SpoolLimits`]. Beyond it, scans are added up per link and minute. Sums go to the spool
//!   too, for which a part of the budget is reserved, and a preallocated file keeps them across a kill.
//!
//! The format of records is that of `shared::wire::spooled`, on disk as well as on the wire. A record has the link and
//! the URL as asked for, the client's address, user agent and referer, the language that `Accept-Language` prefers, and
//! the rule that fired; a redacted one has names of browser and system, the place and a hash of the device in place of address
//! and user agent. Records without a language have the form of the release before.

mod agents;
mod asked;
mod boot;
mod buffers;
mod degrade;
mod metrics;
mod record;
mod redact;
mod reserve;
mod ship;
mod spool;
mod writer;

use std::{io, num::NonZero, path::Path, sync::Arc, thread};

use http::HeaderValue;
use shared::{geo::GeoIp, id::ApplicationId, time::UnixMillis};
use tokio_util::sync::CancellationToken;

pub use self::{
    agents::{Agent, Agents},
    asked::Asked,
    metrics::Metrics,
    ship::{Intake, NotTaken},
};
use self::{buffers::Buffers, redact::Redactor};

/// Bytes of scans that may wait for the writer: some 65,000, 0.65 s of a stalled disk at 100,000 redirects a second.
const MAX_BYTES: usize = 14 << 20;

/// A rule that decided a redirect, as the request path hands it over.
#[derive(Debug)]
pub struct Fired {
    /// Which rule it was.
    pub rule: Arc<RuleName>,
    /// The `Location` that was sent.
    pub location: HeaderValue,
}

/// What a scan says of the rule that decided it.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleName {
    /// The application whose rule it is; `None` for the account's own.
    pub application: Option<ApplicationId>,
    /// Its place in its list, from 0.
    pub index: u16,
    /// Its name.
    pub name: Option<Box<str>>,
}

/// How much disk the spool may take.
#[derive(Debug, Clone, Copy)]
pub struct SpoolLimits {
    /// Bytes of all spool files; scans beyond are added up. A sixteenth is kept back for the sums.
    pub spool_bytes: u64,
    /// Bytes of one spool file; the record that fills it may pass them.
    pub segment_bytes: u64,
}

/// The request path's end of the buffers.
#[derive(Debug)]
pub struct Recorder {
    buffers: Arc<Buffers>,
    metrics: Arc<Metrics>,
}

impl Recorder {
    /// Records one redirect, answered at `at` by this rule; without room it is dropped, and counted as lost.
    pub fn record(&self, asked: &Asked<'_>, at: UnixMillis, fired: Option<&Fired>) {
        if self.buffers.push(|url, out| asked.write(at, fired, url, out)) {
            self.metrics.recorded.inc();
        } else {
            self.metrics.lost.inc();
        }
    }
}

/// The tasks behind the buffers. Dropped without [`Self::run`], they release the folder.
#[derive(Debug)]
pub struct Scans {
    writer: writer::Writer,
    spool: Arc<spool::Spool>,
    metrics: Arc<Metrics>,
}

/// Opens the spool: takes a new boot number, finds what earlier boots left, starts the writer's thread.
///
/// Creates `folder` if it is missing, and reads all spool files in it; blocks meanwhile. `geo` tells the places of
/// clients whose address must not be stored.
///
/// # Errors
/// The folder cannot be created, read or written, or another process uses it; or the system has no random bits.
pub fn open(
    folder: &Path,
    limits: SpoolLimits,
    geo: Arc<dyn GeoIp>,
    metrics: &Arc<Metrics>,
    now: UnixMillis,
) -> io::Result<(Recorder, Scans)> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let buffers = Arc::new(Buffers::new(cores, MAX_BYTES));
    let spool = Arc::new(spool::Spool::open(folder, limits, metrics.clone(), now)?);
    let redactor = Redactor::new(geo)?;
    let writer = writer::Writer::start(spool.clone(), buffers.clone(), metrics.clone(), redactor)?;
    Ok((Recorder { buffers, metrics: metrics.clone() }, Scans { writer, spool, metrics: metrics.clone() }))
}

impl Scans {
    /// Ships until `shutdown`, then empties the buffers onto the disk and tries to ship that too, for 5 s.
    ///
    /// `edge` is the name of the edge, which with boot and sequence number identifies a scan. `shutdown` comes after
    /// the last request was answered.
    pub async fn run(self, edge: Arc<str>, intake: impl Intake, shutdown: CancellationToken) {
        let mut shipper = ship::Shipper::new(edge, intake, self.metrics, self.spool);
        shutdown.run_until_cancelled(shipper.run()).await;
        let writer = self.writer;
        if tokio::task::spawn_blocking(move || writer.stop()).await.is_err() {
            tracing::error!("the writer of scans panicked");
        }
        shipper.finish().await;
    }
}
