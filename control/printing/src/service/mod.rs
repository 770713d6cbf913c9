//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

mod accept;
mod assemble;
mod channel_io;
mod codes;
pub mod files;
mod make;
pub mod orders;
pub mod purge;
mod read;
mod render;
pub mod reprint;
mod rows;
pub mod steps;

use std::{sync::Arc, time::Duration};

use catalog::store::blobs::Blobs;
use redirects::service::Redirects;
use tokio::sync::Notify;

use crate::metrics::PrintMetrics;

pub use print::MAX_CODES;

/// Largest file of an order: 1,000,000 codes of some 20 kB each, three times over.
const MAX_FILE_BYTES: u64 = 64 << 30;

/// What an operator of the service sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrintLimits {
    /// Most codes of an order, at most [`MAX_CODES`].
    pub max_codes: u64,
    /// How long files are kept; `None` is for ever.
    pub files_kept: Option<Duration>,
    /// How long orders are kept once they have ended; `None` is for ever.
    pub orders_kept: Option<Duration>,
}

impl Default for PrintLimits {
    /// As many codes as there may be, files for 30 days, orders for ever.
    fn default() -> Self {
        let files_kept = Some(Duration::from_secs(30 * 24 * 60 * 60));
        Self { max_codes: MAX_CODES, files_kept, orders_kept: None }
    }
}

/// What operations and workers of print orders need; one for each process.
pub struct PrintState {
    /// What the operations on links need.
    pub redirects: Redirects,
    /// The bytes of chunks and files.
    pub blobs: Blobs,
    /// What an operator of the service sets.
    pub limits: PrintLimits,
    /// Wakes the worker.
    pub wake: Notify,
    /// How orders stand.
    pub metrics: PrintMetrics,
}

impl PrintState {
    /// The state of a process.
    #[must_use]
    pub fn new(redirects: Redirects, blobs: &Blobs, limits: PrintLimits) -> Arc<Self> {
        let blobs = blobs.with_max_bytes(MAX_FILE_BYTES);
        Arc::new(Self { redirects, blobs, limits, wake: Notify::new(), metrics: PrintMetrics::default() })
    }
}

kernel::has_core!(PrintState, redirects.core);
