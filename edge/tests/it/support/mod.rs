//! A control plane in memory, an edge on free ports, and clients.

mod client;
mod control;
mod exchange;
mod fleet;
mod record;

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use edge::{DiskLimits, Edge, EdgeConfig, EdgeError, EdgeHandle, Listeners, TlsCerts, backing::Backing};
use shared::time::{Clock, ManualClock, UnixMillis};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    client::{Answer, answered, build, exchange, h2_prior_knowledge, over_tls, raw, request},
    control::{Control, account},
    exchange::{exchange as exchange_bytes, normal},
    fleet::{Files, Internal, Redis, network},
    record::redirect,
};

/// Host of the test domain.
pub(crate) const HOST: &str = "tn.gg";
/// How long anything may take before a test fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Settings of edges that take each of the ways to an answer.
pub(crate) const WAYS: [fn(&mut EdgeConfig); 4] = [
    |_| {},
    |config| config.is_replica = true,
    |config| config.fast_redirects = false,
    |config| (config.is_replica, config.fast_redirects) = (true, false),
];

/// The wall clock of an edge, which the test sets.
#[derive(Debug, Clone)]
pub(crate) struct SharedClock(pub(crate) Arc<ManualClock>);

impl Clock for SharedClock {
    fn now(&self) -> UnixMillis {
        self.0.now()
    }
}

/// An edge that runs inside the test.
pub(crate) struct Running {
    pub(crate) plain: SocketAddr,
    pub(crate) tls: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) handle: EdgeHandle,
    pub(crate) clock: SharedClock,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), EdgeError>>,
}

impl Running {
    /// Starts an edge with its data in `folder` and waits until it is live.
    pub(crate) async fn start(
        control: &Control,
        folder: &Path,
        tls: Option<TlsCerts>,
        adapt: impl FnOnce(&mut EdgeConfig),
    ) -> Self {
        let running = Self::start_cold(control, folder, tls, adapt);
        eventually("the edge is live", || running.handle.status().state == "LIVE").await;
        running
    }

    /// Starts an edge and waits for nothing.
    pub(crate) fn start_cold(
        control: &Control,
        folder: &Path,
        tls: Option<TlsCerts>,
        adapt: impl FnOnce(&mut EdgeConfig),
    ) -> Self {
        Self::launch(control.clone(), folder, tls, adapt)
    }

    /// The same behind any backing.
    pub(crate) fn launch(
        backing: impl Backing,
        folder: &Path,
        tls: Option<TlsCerts>,
        adapt: impl FnOnce(&mut EdgeConfig),
    ) -> Self {
        let mut config =
            EdgeConfig::new("edge-1", folder.to_owned(), "http://127.0.0.1:9", "https://docs.test/docs");
        config.limits.drain_timeout = Duration::from_secs(5);
        // As the binary of an edge has it; one process serves on the caller's runtime.
        config.workers = 2;
        adapt(&mut config);
        let has_tls = tls.is_some() || config.takes_certificates;
        let bind = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (plain, secure, admin) = (bind(), bind(), bind());
        let [plain_at, tls_at, admin_at] = [&plain, &secure, &admin].map(|l| l.local_addr().unwrap());
        let listeners = Listeners {
            plain: vec![plain],
            tls: has_tls.then_some(secure).into_iter().collect(),
            admin: Some(admin),
        };
        let clock = SharedClock(Arc::new(ManualClock::new(UnixMillis(1_790_000_000_000))));
        let edge = Edge::open(config, backing, tls, clock.clone()).unwrap();
        let (handle, shutdown) = (edge.handle(), CancellationToken::new());
        let task = tokio::spawn(edge.serve(listeners, shutdown.clone()));
        Self { plain: plain_at, tls: tls_at, admin: admin_at, handle, clock, shutdown, task }
    }

    /// Tells the edge to stop; it continues with requests under way.
    pub(crate) fn begin_stop(&self) {
        self.shutdown.cancel();
    }

    /// Stops the edge in good order.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(DEADLINE, self.task).await.expect("the edge stops").unwrap().unwrap();
    }

    /// `GET path` on the test domain.
    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        request(self.plain, "GET", HOST, path, headers).await
    }

    /// Asserts that a short id leads to a target.
    pub(crate) async fn assert_leads(&self, short_id: &str, target: &str) {
        let answer = self.get(&format!("/{short_id}"), &[]).await;
        assert_eq!((answer.status, answer.header("location")), (307, target), "{short_id}");
    }
}

/// A control plane with the test domain, and an edge before it.
pub(crate) async fn edge() -> (Control, Running, TempDir) {
    edge_with(|_| {}).await
}

/// The same with other settings.
pub(crate) async fn edge_with(adapt: impl FnOnce(&mut EdgeConfig)) -> (Control, Running, TempDir) {
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    let running = Running::start(&control, folder.path(), None, adapt).await;
    (control, running, folder)
}

/// An edge that often writes what it holds to its disk.
pub(crate) fn on_disk(config: &mut EdgeConfig) {
    config.disk = Some(DiskLimits { interval: Duration::from_millis(20), ..DiskLimits::default() });
}

/// The same with a full replica.
pub(crate) fn full(config: &mut EdgeConfig) {
    config.is_replica = true;
    on_disk(config);
}

/// Waits until a condition holds; fails when it takes too long.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + DEADLINE;
    while !holds() {
        assert!(tokio::time::Instant::now() < end, "not within {DEADLINE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
