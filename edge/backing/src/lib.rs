//! The interface of an edge to what is behind it: reads of keys it does not hold, one at a time for each key, changes, and the
//! delivery of scans.

mod edge_key;
mod error;
mod flight;
mod geo;
mod internal;
pub mod limiter;
mod network;
pub mod origins;
mod redis;
pub mod stream;
pub mod trust;
pub mod unknown;

use std::{
    future::{Future, ready},
    sync::Arc,
    time::Duration,
};

use scans::{Intake, NotTaken};
use shared::{
    redirect::RedirectKey,
    rules::AccountRules,
    short_url::ShortDomain,
    wire::{
        limits::LimitReport,
        links::LinksPage,
        scan::ScanReceipt,
        spooled::SpooledScans,
        stream::{Epoch, Fill, Hello, Rev, ToControl, ToEdge},
        unknown::UnknownReport,
    },
    withheld::Withheld,
};

pub use self::{
    edge_key::EdgeKey,
    error::EdgeError,
    flight::{Flight, Flights},
    geo::GeoDatabase,
    internal::connector,
    network::{Network, NetworkConfig},
};

/// Domains, rules and what is withheld from a view, so that an edge can start while control is down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupView {
    /// The epoch of the view.
    pub epoch: Epoch,
    /// The revision that all of it is as of.
    pub watermark: Rev,
    /// Every short domain.
    pub domains: Vec<ShortDomain>,
    /// The rules of every account that has some.
    pub rules: Vec<Arc<AccountRules>>,
    /// Everything that is withheld; `None` if an older release wrote the view.
    pub withheld: Option<Vec<Withheld>>,
}

/// How a backing stands, for `/ready` and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackingStatus {
    /// Whether the view answers; `None` before the first read, or if there is no separate view.
    pub view_up: Option<bool>,
    /// For how long it does or does not.
    pub view_for: Duration,
}

/// How a change stream ended, if that affects where to connect next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The peer was silent for longer than allowed.
    Silent,
    /// The peer asked the edge to connect elsewhere.
    SentAway,
}

/// Why the backing gave no answer; the edge keeps serving what it holds.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// Nothing answered in time, or the connection broke.
    #[error("the backing is unreachable: {0}")]
    Unreachable(String),
    /// The other side refused, for a reason that a repeat does not mend.
    #[error("the backing refused: {0}")]
    Refused(String),
}

/// The control plane and its view, as an edge uses them (README, "One interface, two backings").
///
/// Two implementations pass one conformance suite: Redis with the network stream, and in process.
pub trait Backing: Send + Sync + 'static {
    /// An open change stream.
    type Changes: Changes;

    /// Reads one key and the watermark of the view it came from, in one atomic step.
    ///
    /// # Errors
    /// Nothing answered in time.
    fn get(&self, key: &RedirectKey) -> impl Future<Output = Result<Fill, BackingError>> + Send;

    /// Reads one key from the source, bypassing any view: if the fill rule refused the view's answer, and while the
    /// view is down. Rate-limited, because control must not carry the misses of a fleet.
    ///
    /// # Errors
    /// Nothing answered in time, or there were too many.
    fn lookup(&self, key: &RedirectKey) -> impl Future<Output = Result<Fill, BackingError>> + Send;

    /// The Digital Link that the code of a link says, as a URL; or why it has none. No record of an edge has it, because a code of
    /// it is seldom asked for, while a GTIN may be that of a million links. What does not know it says that it is unreachable.
    ///
    /// # Errors
    /// Nothing answered in time, there were too many, or control is of a version that does not know it.
    fn digital_link(
        &self,
        _key: &RedirectKey,
    ) -> impl Future<Output = Result<Result<String, String>, BackingError>> + Send {
        ready(Err(BackingError::Unreachable("no Digital Links are known here".to_owned())))
    }

    /// Opens the change stream after `hello.applied`; its first message is a `Welcome`. Has its own timeouts: each
    /// step is limited, so that one silent replica does not use up the time of the others.
    ///
    /// # Errors
    /// Nothing answered, or the edge is refused.
    fn changes(&self, hello: Hello) -> impl Future<Output = Result<Self::Changes, BackingError>> + Send;

    /// Whether another replica than that of the newest stream may answer: then this one need not be waited for.
    fn has_other(&self) -> bool {
        false
    }

    /// Reports how the stream ended, so that the next one is opened elsewhere.
    fn ended(&self, _end: StreamEnd) {}

    /// Hands over scans; a batch seen before is acknowledged and not counted again.
    ///
    /// # Errors
    /// Nothing answered (repeat), or the batch is refused (an alarm: it will never be taken).
    fn record_scans(
        &self,
        scans: &SpooledScans,
    ) -> impl Future<Output = Result<ScanReceipt, BackingError>> + Send;

    /// Hands over how often ids were asked for that do not exist; a report that comes again is not counted again. What
    /// has no place for it takes it and forgets it.
    ///
    /// # Errors
    /// Nothing answered in time, or control is of a version that takes no such reports.
    fn record_unknown(
        &self,
        _report: &UnknownReport,
    ) -> impl Future<Output = Result<(), BackingError>> + Send {
        ready(Ok(()))
    }

    /// Hands over how often links with a limit were scanned; a report that comes again changes nothing. What has no place for it
    /// takes it and forgets it.
    ///
    /// # Errors
    /// Nothing answered in time, or control is of a version that takes no such reports.
    fn record_limits(&self, _report: &LimitReport) -> impl Future<Output = Result<(), BackingError>> + Send {
        ready(Ok(()))
    }

    /// Domains and rules from the view, if there is one and it is complete.
    ///
    /// # Errors
    /// Nothing answered in time.
    fn setup(&self) -> impl Future<Output = Result<Option<SetupView>, BackingError>> + Send {
        ready(Ok(None))
    }

    /// The links of a domain that follow a short id (all, if it is empty), where they are written: for an edge
    /// that holds every link. Bounded, as a fleet that starts must not take the database from the others.
    ///
    /// # Errors
    /// Nothing answered in time, or there were too many.
    fn page(&self, domain: &str, after: &str)
    -> impl Future<Output = Result<LinksPage, BackingError>> + Send;

    /// How the backing stands.
    fn status(&self) -> BackingStatus {
        BackingStatus::default()
    }
}

/// Both directions of one change stream.
pub trait Changes: Send + 'static {
    /// The next message; cancel-safe.
    ///
    /// # Errors
    /// The stream ended; the edge reconnects.
    fn next(&mut self) -> impl Future<Output = Result<ToEdge, BackingError>> + Send;

    /// Sends an acknowledgement or a wish to resync.
    ///
    /// # Errors
    /// The stream ended.
    fn send(&mut self, message: ToControl) -> impl Future<Output = Result<(), BackingError>> + Send;
}

/// The backing as the place where scans, and counts of links with a limit, go.
pub struct Delivery<B>(pub Arc<B>);

impl<B: Backing> Intake for Delivery<B> {
    async fn take(&self, scans: &SpooledScans) -> Result<ScanReceipt, NotTaken> {
        self.0.record_scans(scans).await.map_err(|error| match error {
            BackingError::Unreachable(reason) => NotTaken::Unreachable(reason),
            BackingError::Refused(reason) => NotTaken::Refused(reason),
        })
    }
}

impl<B: Backing> scan_limits::Sink for Delivery<B> {
    async fn report(&self, report: &LimitReport) -> Result<(), scan_limits::NotTaken> {
        self.0.record_limits(report).await.map_err(|error| match error {
            BackingError::Unreachable(reason) => scan_limits::NotTaken::Unreachable(reason),
            BackingError::Refused(reason) => scan_limits::NotTaken::Refused(reason),
        })
    }
}

/// Between half of `wait` and the whole, at random, so that a fleet does not come back in step.
pub fn jittered(wait: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    wait / 2 + (wait / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}
