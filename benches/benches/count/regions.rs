//! What is counted: each region does one thing many times, after enough of it to be warm.

use std::{future::Future, hint::black_box, net::SocketAddr, thread, time::Duration};

use anyhow::{Context as _, Result, anyhow, ensure};
use edge::{Connector, Edge, EdgeConfig, Listeners};
use qr::{Format, QrRequest, render};
use replica::ReplicaState;
use shared::time::{Clock, UnixMillis};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::{
    control::{Control, HOST, PRODUCT, known},
    wire::Wire,
};

/// Requests before what is counted.
const WARM: usize = 2_000;
/// Ids that are asked for in turn.
const IDS: usize = 1_000;
/// How long an edge may take to hear of its domains.
const PATIENCE: Duration = Duration::from_secs(60);

/// One thing to count.
pub(crate) struct Region {
    /// As it stands in `counts.json`.
    pub(crate) name: &'static str,
    /// How often it is done while it is counted.
    pub(crate) times: usize,
    kind: Kind,
}

enum Kind {
    /// Asks for these paths, and each answer has this status.
    Ask { links: Links, by: By, status: &'static str, path: fn(usize) -> String },
    /// Renders.
    Qr(Format),
}

/// What reads and answers the requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The fast reader, as far as it goes.
    Fast,
    /// hyper alone.
    Hyper,
}

/// What the edge holds of the links.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// Those that were asked for.
    Cached,
    /// All of them.
    Full,
}

/// Everything that is counted.
pub(crate) const ALL: [Region; 11] = [
    asked("redirect", 4_000, (Links::Cached, By::Fast), "307", |n| known(n % IDS)),
    asked("redirect, by hyper", 4_000, (Links::Cached, By::Hyper), "307", |n| known(n % IDS)),
    // Each with a serial of its own, of a product with links in several languages.
    asked("redirect by Digital Link", 4_000, (Links::Cached, By::Fast), "307", |n| {
        format!("{PRODUCT}/21/{}", known(n))
    }),
    asked("redirect by Digital Link, by hyper", 4_000, (Links::Cached, By::Hyper), "307", |n| {
        format!("{PRODUCT}/21/{}", known(n))
    }),
    asked("unknown id, remembered", 4_000, (Links::Cached, By::Fast), "404", |n| format!("X{}", n % IDS)),
    asked("unknown id, asked for the first time", 1_000, (Links::Cached, By::Fast), "404", |n| {
        format!("X{n}")
    }),
    asked("redirect, every link held", 4_000, (Links::Full, By::Fast), "307", |n| known(n % IDS)),
    asked("redirect, every link held, by hyper", 4_000, (Links::Full, By::Hyper), "307", |n| known(n % IDS)),
    asked("unknown id, every link held", 4_000, (Links::Full, By::Fast), "404", |n| format!("X{n}")),
    asked("QR PNG from memory", 2_000, (Links::Cached, By::Fast), "200", |n| {
        format!("{}.png", known(n % 10))
    }),
    Region { name: "QR PNG rendered", times: 20, kind: Kind::Qr(Format::Png) },
];

const fn asked(
    name: &'static str,
    times: usize,
    (links, by): (Links, By),
    status: &'static str,
    path: fn(usize) -> String,
) -> Region {
    Region { name, times, kind: Kind::Ask { links, by, status, path } }
}

/// Runs one region; what callgrind counts is what happens in [`counted_region`].
///
/// # Errors
/// There is no such region, the edge does not start, or an answer is wrong.
pub(crate) fn run(name: &str) -> Result<()> {
    let region = ALL.iter().find(|region| region.name == name).context("there is no such region")?;
    match &region.kind {
        Kind::Ask { links, by, status, path } => ask((*links, *by), region.times, status, *path),
        Kind::Qr(format) => {
            let request =
                QrRequest::parse(*format, [("w", "300")]).map_err(|faults| anyhow!("{faults:?}"))?;
            let once = || render(black_box("HTTPS://TN.GG/K7Q2M4XA9R"), "K7Q2M4XA9R", black_box(&request));
            ensure!(once()?.bytes.starts_with(b"\x89PNG"), "no image");
            counted_region(&mut || (0..region.times).for_each(|_| drop(black_box(once()))));
            Ok(())
        }
    }
}

/// Callgrind counts from entry to exit of this function (`--toggle-collect`): nothing else may have its name.
#[inline(never)]
fn counted_region(work: &mut dyn FnMut()) {
    work();
    // Without something behind it the call could become a jump, and the exit would not be seen.
    black_box(());
}

fn ask(
    (links, by): (Links, By),
    times: usize,
    status: &'static str,
    path: fn(usize) -> String,
) -> Result<()> {
    let running = Running::start(links, by)?;
    // A connection that was idle for long would end: each batch has its own.
    let request = |n: usize| {
        format!(
            "GET /{} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like \
             Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1\r\n\
             Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
             Accept-Language: en-GB,en;q=0.9\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n",
            path(n)
        )
        .into_bytes()
    };
    let wire = |range: std::ops::Range<usize>| {
        let length = range.len();
        let (wire, seen) = Wire::new(range.map(request).collect(), status);
        (wire, move || -> Result<()> {
            let (right, wrong) = seen.counts();
            ensure!(
                right == length && wrong == 0,
                "{right} of {length} answers were {status}, {wrong} were not"
            );
            Ok(())
        })
    };
    let (warm, check_warm) = wire(0..WARM);
    running.serve(warm);
    check_warm()?;
    let (counted, check) = wire(WARM..WARM + times);
    let mut counted = Some(counted);
    counted_region(&mut || {
        if let Some(wire) = counted.take() {
            running.serve(wire);
        }
    });
    check()
}

/// An edge whose helpers run on a thread of their own.
struct Running {
    connector: Connector<Control>,
    runtime: Runtime,
    stop: CancellationToken,
    helpers: Option<thread::JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Running {
    fn start(links: Links, by: By) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut config =
            EdgeConfig::new("count", folder.path().to_owned(), "http://127.0.0.1:9", "https://docs/");
        // Nothing is thrown out while it is counted.
        config.cache_bytes = 1 << 30;
        config.is_replica = links == Links::Full;
        config.fast_redirects = by == By::Fast;
        // One address misses as often as it likes.
        (config.limits.misses_per_address, config.limits.misses_per_second) = (1_000_000, 1_000_000);
        let edge = Edge::open(config, Control::new(IDS), None, FixedClock)?;
        let (handle, stop) = (edge.handle(), CancellationToken::new());
        let connector = edge.connector(stop.clone());
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let listeners = Listeners { plain: vec![listener], ..Listeners::default() };
        let shutdown = stop.clone();
        let helper = Builder::new_current_thread().enable_all().build()?;
        let helpers = thread::spawn(move || drop(helper.block_on(edge.serve(listeners, shutdown))));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let running = Self { connector, runtime, stop, helpers: Some(helpers), _folder: folder };
        let begun = std::time::Instant::now();
        // Until then a full replica asks as the others do.
        let serves_alone = || {
            let status = handle.status();
            let is_whole = status.replica.is_none_or(|replica| replica.state == ReplicaState::Whole);
            status.state == "LIVE" && is_whole
        };
        while !serves_alone() {
            ensure!(begun.elapsed() < PATIENCE, "the edge is not ready");
            thread::sleep(Duration::from_millis(1));
        }
        Ok(running)
    }

    fn serve(&self, wire: Wire) {
        let peer = SocketAddr::from(([192, 0, 2, 7], 50_000));
        let work: std::pin::Pin<Box<dyn Future<Output = ()> + '_>> =
            Box::pin(self.connector.serve(wire, peer));
        self.runtime.block_on(work);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(helpers) = self.helpers.take() {
            // Its own panic reports the fault.
            let _ = helpers.join();
        }
    }
}

/// A clock that costs nothing: what a real one costs is the kernel's.
#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_790_000_000_000)
    }
}
