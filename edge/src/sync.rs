//! Follows the change stream: applies it to the cache, acknowledges, and reconnects when it is silent.

mod status;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use shared::{
    time::Clock,
    wire::{
        PROTOCOL,
        ack_limiter::AckLimiter,
        stream::{Change, Hello, Rejected, Start, ToControl, ToEdge, Welcome},
    },
};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

pub use self::status::State;
pub(crate) use self::status::{Boot, SyncStatus};
use crate::{
    TlsCerts,
    backing::{Backing, BackingError, Changes, StreamEnd, jittered},
    cache::{EdgeCache, Sources},
    config::EdgeConfig,
    domains::Domains,
    metrics::Metrics,
};

/// Silence after which the stream counts as dead: four heartbeats.
const WATCHDOG: Duration = Duration::from_secs(1);
/// How long the first message may take where another replica may answer.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the first message, sending one, or reading the setup may take.
const STREAM_TIMEOUT: Duration = Duration::from_secs(5);
/// First and longest wait before another attempt to connect; a random half is taken off.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The task that follows control.
pub(crate) struct Follower<B> {
    pub(crate) config: Arc<EdgeConfig>,
    pub(crate) backing: Arc<B>,
    pub(crate) cache: Arc<EdgeCache>,
    pub(crate) domains: Arc<Domains>,
    pub(crate) status: Arc<SyncStatus>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tls: Option<TlsCerts>,
    /// Whether it was said that places are missing.
    pub(crate) has_warned: AtomicBool,
}

impl<B: Backing> Follower<B> {
    /// Follows until `shutdown`; reconnects with jittered backoff.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        if !self.status.is_ready() {
            self.status.set(State::Boot, &*self.clock);
        }
        shutdown.run_until_cancelled(self.follow()).await;
    }

    async fn follow(&self) {
        let mut backoff = BACKOFF.0;
        loop {
            if !self.status.is_ready() {
                self.status.set(State::Connecting, &*self.clock);
            }
            let mut link = Link::new(self);
            let ended = link.run().await;
            let was_connected = link.connected;
            // Before anything that waited is served again.
            self.cache.set_live(false);
            self.cache.release();
            if !self.status.is_ready() && !was_connected {
                self.begin_from_view().await;
            }
            if self.status.is_ready() {
                self.stand(State::Stale);
            }
            backoff = if was_connected { BACKOFF.0 } else { (backoff * 2).min(BACKOFF.1) };
            let wait = match ended {
                Ended::Goaway(wait) => wait.max(BACKOFF.0),
                Ended::Broken(reason) => {
                    tracing::warn!(%reason, "the change stream ended");
                    backoff
                }
            };
            tokio::time::sleep(jittered(wait)).await;
        }
    }

    /// Control is down and the cache is empty: takes domains and rules from the view, which then answers reads (I9).
    async fn begin_from_view(&self) {
        let view = match timeout(STREAM_TIMEOUT, self.backing.setup()).await {
            Ok(Ok(Some(view))) => view,
            Ok(Ok(None)) | Ok(Err(_)) | Err(_) => return,
        };
        let sets = view.rules.into_iter().map(|set| (set.account, set)).collect();
        let rules = Sources { as_of: view.watermark, sets };
        self.domains.replace(view.watermark, &view.domains, view.withheld.as_deref());
        self.cache.boot(self.cache.prepare(&view.epoch, view.watermark, &rules));
        tracing::warn!(applied = view.watermark, "control is unreachable: the edge starts from the view");
        self.status.begin(Boot::View, &*self.clock);
    }

    /// Without addresses only the edge can look up places: says once that it cannot.
    fn warn_without_places(&self) {
        if self.config.geo.knows_places()
            || self.has_warned.load(SeqCst)
            || !self.domains.omit_personal_data()
        {
            return;
        }
        self.has_warned.store(true, SeqCst);
        tracing::warn!(
            "an account keeps no personal data and this edge has no city database: its scans have no country and no \
             city (WAYMARK_GEOIP_DB)"
        );
    }

    fn stand(&self, state: State) {
        self.cache.set_live(state == State::Live);
        self.status.set(state, &*self.clock);
    }

    fn hello(&self) -> Hello {
        let (epoch, applied) = self.cache.position();
        Hello {
            proto: PROTOCOL,
            edge_id: self.config.edge_id.clone(),
            region: self.config.region.clone(),
            build: env!("CARGO_PKG_VERSION").into(),
            epoch,
            applied,
            contents: self.domains.contents(),
            certificates: self.tls.as_ref().and_then(TlsCerts::digests),
        }
    }
}

enum Ended {
    Goaway(Duration),
    Broken(String),
}

impl From<BackingError> for Ended {
    fn from(error: BackingError) -> Self {
        Self::Broken(error.to_string())
    }
}

/// One connection of the stream.
struct Link<'a, B: Backing> {
    follower: &'a Follower<B>,
    connected: bool,
    rejected: Vec<Rejected>,
    ack_pace: AckLimiter,
    /// Events wait until then, to be acknowledged together.
    ack_due: Option<Instant>,
    /// Since when a gap waits to be mended.
    resyncing: Option<Instant>,
}

impl<'a, B: Backing> Link<'a, B> {
    fn new(follower: &'a Follower<B>) -> Self {
        let ack_pace = AckLimiter::new(Instant::now().into_std());
        Self { follower, connected: false, rejected: Vec::new(), ack_pace, ack_due: None, resyncing: None }
    }

    async fn run(&mut self) -> Ended {
        match self.exchange().await {
            Err(ended) => ended,
            Ok(never) => match never {},
        }
    }

    async fn exchange(&mut self) -> Result<std::convert::Infallible, Ended> {
        let broken = |what: &str| Ended::Broken(what.to_owned());
        let hello = self.follower.hello();
        let mut changes = self.follower.backing.changes(hello).await?;
        let patience = if self.follower.backing.has_other() { WELCOME_TIMEOUT } else { STREAM_TIMEOUT };
        let first = match timeout(patience, changes.next()).await {
            Ok(first) => first?,
            Err(_) => return Err(self.silent("no welcome came")),
        };
        let welcome = match first {
            ToEdge::Welcome(welcome) => welcome,
            // Sent away before it began, as by a replica that stops.
            goaway @ ToEdge::Goaway { .. } => {
                self.take(goaway, &mut changes).await?;
                return Err(broken("sent away"));
            }
            ToEdge::Events(_) | ToEdge::Heartbeat { .. } => {
                return Err(broken("the first message is no welcome"));
            }
        };
        self.welcome(&welcome)?;
        self.certificates(&welcome).await;
        self.follower.metrics.connects.inc();
        self.connected = true;
        self.status(State::Sync);
        self.acknowledge(&mut changes).await?;

        let mut heard = Instant::now();
        loop {
            // `None` never wakes the branch; the far deadline only gives it a future.
            let ack_at = self.ack_due.unwrap_or(heard + WATCHDOG * 2);
            tokio::select! {
                biased;
                message = changes.next() => {
                    heard = Instant::now();
                    self.take(message?, &mut changes).await?;
                }
                () = sleep_until(ack_at), if self.ack_due.is_some() => self.acknowledge_events(&mut changes).await?,
                () = sleep_until(heard + WATCHDOG) => {
                    self.status(State::Lagging);
                    return Err(self.silent("no heartbeat for a second"));
                }
            }
        }
    }

    /// The other side is silent: the next stream is opened elsewhere, where there is an elsewhere.
    fn silent(&self, reason: &str) -> Ended {
        self.follower.backing.ended(StreamEnd::Silent);
        Ended::Broken(reason.to_owned())
    }

    async fn take(&mut self, message: ToEdge, changes: &mut B::Changes) -> Result<(), Ended> {
        match message {
            ToEdge::Welcome(welcome) => {
                self.welcome(&welcome)?;
                self.certificates(&welcome).await;
                self.resyncing = None;
                self.status(State::Sync);
                self.acknowledge(changes).await
            }
            ToEdge::Events(events) => {
                match self.follower.cache.apply(&events, &self.follower.domains) {
                    Ok(rejected) => {
                        self.reject(rejected);
                        let refused = self.follower.tls.as_ref().map(|tls| tls.apply(&events));
                        self.reject(refused.unwrap_or_default());
                        if events.items.iter().any(|event| matches!(event.change, Change::Domain(_))) {
                            self.follower.warn_without_places();
                        }
                        self.resyncing = None;
                        self.see_head(events.last);
                    }
                    Err(gap) => {
                        let reason = format!("events after {} do not fit", gap.prev);
                        return self.resync(reason, changes).await;
                    }
                }
                let from = Instant::from_std(self.ack_pace.next());
                if from <= Instant::now() {
                    self.acknowledge_events(changes).await
                } else {
                    self.ack_due.get_or_insert(from);
                    Ok(())
                }
            }
            ToEdge::Heartbeat { seq: _, head } => {
                self.see_head(head);
                let (_, applied) = self.follower.cache.position();
                if applied > head {
                    // The log was cut: the next hello reports our position.
                    return Err(Ended::Broken(format!("applied {applied} is ahead of head {head}")));
                }
                self.acknowledge(changes).await?;
                if applied == head {
                    self.resyncing = None;
                    self.status(State::Live);
                    return Ok(());
                }
                // Everything up to `head` was sent before this heartbeat: what is missing was lost.
                self.resync(format!("head is {head}"), changes).await
            }
            ToEdge::Goaway { reason, retry_after_ms } => {
                tracing::info!(%reason, "control sends the edge to another replica");
                self.follower.backing.ended(StreamEnd::SentAway);
                Err(Ended::Goaway(Duration::from_millis(retry_after_ms).min(BACKOFF.1)))
            }
        }
    }

    fn welcome(&mut self, welcome: &Welcome) -> Result<(), Ended> {
        let (epoch, applied) = self.follower.cache.position();
        // Domains first: a task that loads the full replica from here on knows each domain that no later event adds.
        let domains = self.follower.domains.completed(welcome);
        self.follower.domains.replace(welcome.head, &domains, welcome.withheld.as_deref());
        self.follower.warn_without_places();
        match welcome.start {
            Start::Snapshot { at_rev } => self.begin_anew(welcome, at_rev),
            Start::Resume if epoch.as_ref() == Some(&welcome.epoch) => {}
            // An edge that has applied nothing continues anybody's history from its beginning.
            Start::Resume if applied == 0 => self.begin_anew(welcome, 0),
            Start::Resume => return Err(Ended::Broken("a resume into another epoch".to_owned())),
        }
        if self.follower.status.boot().is_some() {
            tracing::info!(
                applied,
                head = welcome.head,
                "control is reachable again: the offline start ends"
            );
            self.follower.cache.confirm(welcome.head);
        }
        self.follower.status.head.store(welcome.head, SeqCst);
        Ok(())
    }

    /// Takes certificates and challenges, before the welcome is acknowledged.
    async fn certificates(&mut self, welcome: &Welcome) {
        let follower = self.follower;
        if let Some(tls) = &follower.tls {
            let refused = tls.welcome(welcome).await;
            self.reject(refused);
        }
    }

    fn begin_anew(&mut self, welcome: &Welcome, at_rev: u64) {
        let rejected = self.follower.cache.snapshot(&welcome.epoch, at_rev, &welcome.rules);
        self.reject(rejected);
    }

    fn reject(&mut self, rejected: Vec<Rejected>) {
        for item in &rejected {
            tracing::error!(rev = item.rev, reason = %item.reason, "a change was rejected");
            self.follower.metrics.rejected_events.inc();
        }
        self.rejected.extend(rejected);
    }

    async fn acknowledge_events(&mut self, changes: &mut B::Changes) -> Result<(), Ended> {
        self.ack_pace.sent(Instant::now().into_std());
        self.acknowledge(changes).await
    }

    async fn acknowledge(&mut self, changes: &mut B::Changes) -> Result<(), Ended> {
        let (_, applied) = self.follower.cache.position();
        let ack = ToControl::Ack { applied, rejected: std::mem::take(&mut self.rejected) };
        self.ack_due = None;
        send(changes, ack).await
    }

    async fn resync(&mut self, reason: String, changes: &mut B::Changes) -> Result<(), Ended> {
        match self.resyncing {
            Some(since) if since.elapsed() >= WATCHDOG => {
                Err(Ended::Broken("a gap was not mended within a second".to_owned()))
            }
            // Already requested; messages that were in flight before control received the request do not fit either.
            Some(_) => Ok(()),
            None => {
                self.resyncing = Some(Instant::now());
                self.follower.metrics.resyncs.inc();
                self.status(State::Lagging);
                let (_, applied) = self.follower.cache.position();
                send(changes, ToControl::Resync { applied, reason }).await
            }
        }
    }

    fn see_head(&self, head: u64) {
        self.follower.status.head.fetch_max(head, SeqCst);
    }

    fn status(&self, state: State) {
        self.follower.stand(state);
    }
}

async fn send<C: Changes>(changes: &mut C, message: ToControl) -> Result<(), Ended> {
    match timeout(STREAM_TIMEOUT, changes.send(message)).await {
        Ok(sent) => Ok(sent?),
        Err(_) => Err(Ended::Broken("sending took too long".to_owned())),
    }
}
