//! One permit, as its connection holds it and as its requests see it.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Instant,
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{Holder, Owner, Permits, Rank, Refused};

/// State that a connection and its requests share.
#[derive(Debug)]
pub(super) struct Shared {
    permits: Arc<Permits>,
    pub(super) id: u64,
    pub(super) rank: AtomicUsize,
    held: Mutex<Held>,
    ends: CancellationToken,
    /// Whether others speak through it: an edge or a proxy.
    is_relay: AtomicBool,
    since: Instant,
    begun: AtomicU64,
    ended: AtomicU64,
    /// When the last request ended, in milliseconds after `since`.
    quiet_ms: AtomicU64,
    is_upgraded: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) is_gone: bool,
    pub(super) rank: Rank,
    pub(super) address: Option<IpAddr>,
    /// Whose shares it takes: of a key, an account, and its applications.
    pub(super) owners: Vec<Owner>,
    /// The account whose public keys it counts for.
    pub(super) public: Option<Owner>,
}

impl Shared {
    pub(super) fn new(permits: Arc<Permits>, id: u64, address: Option<IpAddr>) -> Self {
        Self {
            permits,
            id,
            rank: AtomicUsize::new(Rank::Newcomer as usize),
            held: Mutex::new(Held {
                is_gone: false,
                rank: Rank::Newcomer,
                address,
                owners: Vec::new(),
                public: None,
            }),
            ends: CancellationToken::new(),
            is_relay: AtomicBool::new(false),
            since: Instant::now(),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            quiet_ms: AtomicU64::new(0),
            is_upgraded: AtomicBool::new(false),
        }
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.begun.load(SeqCst) > self.ended.load(SeqCst)
    }

    pub(super) fn displace(&self) {
        self.ends.cancel();
    }
}

/// The permit of one connection, returned on drop.
#[derive(Debug)]
pub struct Permit(pub(super) Arc<Shared>);

impl Permit {
    /// The handle for the requests of the connection.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(self.0.clone())
    }

    /// Completes when the connection must close to make room for another.
    pub fn displaced(&self) -> WaitForCancellationFutureOwned {
        self.0.ends.clone().cancelled_owned()
    }

    /// Counts a connection that the server closed.
    pub(crate) fn note(&self, reason: Refused) {
        // A displaced connection was counted when it was displaced.
        if reason != Refused::Displaced {
            self.0.permits.note(reason);
        }
    }

    /// Requests that began, and when the last one ended, unless one is under way.
    pub(crate) fn activity(&self) -> (u64, Option<Instant>) {
        // `ended` first: a request that ends in between counts as under way.
        let ended = self.0.ended.load(SeqCst);
        let begun = self.0.begun.load(SeqCst);
        let quiet = std::time::Duration::from_millis(self.0.quiet_ms.load(SeqCst));
        (begun, (begun == ended).then(|| self.0.since + quiet))
    }

    pub(crate) fn is_upgraded(&self) -> bool {
        self.0.is_upgraded.load(Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.0.permits.lock();
        self.0.permits.leave(&mut state, &self.0);
    }
}

/// A connection as its requests see it; cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// Notes that a request begins; it is over when the guard is dropped.
    #[must_use]
    pub fn begin(&self) -> Busy {
        self.0.begun.fetch_add(1, SeqCst);
        Busy(self.0.clone())
    }

    /// Notes that the connection speaks something else from now on, which has time limits of its own.
    pub fn upgrade(&self) {
        self.0.is_upgraded.store(true, Relaxed);
    }

    /// Notes that others speak through this connection: an edge, or a proxy. It counts for no address and no key.
    pub fn relay(&self) {
        if !self.0.is_relay.swap(true, SeqCst) {
            let mut state = self.0.permits.lock();
            let address = self.0.held().address.take();
            if let Some(address) = address {
                state.remove(&Owner::Address(address));
            }
        }
    }

    /// Shows the key of a request.
    ///
    /// # Errors
    /// The key, its account or all public keys have as many connections as they may, which was counted.
    pub fn prove(&self, holder: &Holder) -> Result<(), Refused> {
        let is_relay = self.0.is_relay.load(SeqCst);
        if self.0.rank.load(SeqCst) >= holder.rank as usize && (is_relay || !self.0.held().owners.is_empty())
        {
            return Ok(());
        }
        match self.0.permits.promote(&self.0, holder, !is_relay, None) {
            // It may be another's request next.
            Err(_) if is_relay => Ok(()),
            Err(reason) => Err(self.refuse(reason)),
            Ok(()) => Ok(()),
        }
    }

    /// Presents the key of a long-lived connection (WebSocket or MQTT), which a proxy may relay for `client`.
    ///
    /// # Errors
    /// The key, its account, the address or all public keys are at their bound; the refusal was counted.
    pub fn hold(&self, holder: &Holder, client: Option<IpAddr>) -> Result<(), Refused> {
        let client = client.filter(|_| self.0.is_relay.load(SeqCst));
        self.0.permits.promote(&self.0, holder, true, client).map_err(|reason| self.refuse(reason))
    }

    fn refuse(&self, reason: Refused) -> Refused {
        if reason != Refused::Displaced {
            self.0.permits.note(reason);
        }
        reason
    }
}

/// A request under way.
#[derive(Debug)]
pub struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        let quiet = u64::try_from(self.0.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.quiet_ms.store(quiet, SeqCst);
        self.0.ended.fetch_add(1, SeqCst);
    }
}
