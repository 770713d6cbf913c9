//! Connections of HTTP/1.1: an edge with the fast path answers any bytes as one without it, in which hyper reads all.
#![no_main]

#[path = "../../../edge/tests/it/support/exchange.rs"]
mod exchange;

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

use edge::{
    Connector, Edge, EdgeConfig, Listeners,
    backing::{Backing, BackingError, Changes},
};
use shared::{
    digital_link::{LinkSet, SerialMode, TypedLink},
    redirect::{Redirect, RedirectKey},
    redirect_status::RedirectStatus,
    short_url::{Scheme, ShortDomain},
    time::{Clock, UnixMillis},
    wire::{
        links::LinksPage,
        scan::ScanReceipt,
        spooled::SpooledScans,
        stream::{Fill, HEARTBEAT_MS, Hello, Start, ToControl, ToEdge, Welcome},
    },
};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

const HOST: &str = "tn.gg";

static TWINS: LazyLock<[Connector<Links>; 2]> = LazyLock::new(|| [true, false].map(twin));
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().unwrap());

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first byte says where the client pauses.
    let Some((at, sent)) = bytes.split_first() else { return };
    // Whatever goes on to control takes its time, and may come before or after the end of the connection.
    if [&b"redirect"[..], b"Redirect"].iter().any(|word| sent.windows(word.len()).any(|part| part == *word)) {
        return;
    }
    let (first, second) = sent.split_at(usize::from(*at).min(sent.len()));
    let ask = |twin: usize, parts: &[&[u8]]| {
        let parts = parts.iter().map(|part| part.to_vec()).collect();
        let peer = SocketAddr::from(([192, 0, 2, 7], 50_000));
        exchange::normal(&RUNTIME.block_on(exchange::exchange(&TWINS[twin], peer, parts)))
    };
    let (fast, hyper) = (ask(0, &[first, second]), ask(1, &[first, second]));
    if fast != hyper {
        // A request with a fault that never ends is refused by hyper or not, as its parts come.
        assert_eq!(fast, ask(1, &[sent]), "{hyper:?}");
    }
});

/// An edge that holds four links and a product.
fn twin(is_fast: bool) -> Connector<Links> {
    let folder = tempfile::tempdir().unwrap().keep();
    let mut config = EdgeConfig::new("fuzz", folder, "http://127.0.0.1:9", "https://docs/");
    config.fast_redirects = is_fast;
    config.is_replica = true;
    (config.limits.misses_per_address, config.limits.misses_per_second) = (u32::MAX, u32::MAX);
    let edge = Edge::open(config, Links, None, FixedClock).unwrap();
    let (handle, connector) = (edge.handle(), edge.connector(CancellationToken::new()));
    thread::spawn(move || {
        let plain = vec![TcpListener::bind("127.0.0.1:0").unwrap()];
        let listeners = Listeners { plain, ..Listeners::default() };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let _ = runtime.block_on(edge.serve(listeners, CancellationToken::new()));
    });
    while handle.status().state != "LIVE" || handle.status().replica.is_none_or(|replica| replica.links < 5) {
        thread::sleep(Duration::from_millis(5));
    }
    connector
}

/// A control with four links and a product.
struct Links;

fn links() -> Vec<Redirect> {
    use RedirectStatus::{MovedPermanently, TemporaryRedirect};
    [
        ("ABC", false, TemporaryRedirect),
        ("K7Q2M4XA9R", false, TemporaryRedirect),
        ("MOVED", false, MovedPermanently),
        ("QUERY", true, TemporaryRedirect),
        ("01/09528765123457", false, TemporaryRedirect),
    ]
    .into_iter()
    .map(|(short_id, forward_query, status_code)| Redirect {
        forward_query,
        status_code,
        digital_link: short_id.starts_with("01/").then(product),
        ..Redirect::plain(
            HOST.parse().unwrap(),
            short_id.parse().unwrap(),
            "U5Gq8sKVBfgRtKRaagBefgwk".parse().unwrap(),
            "https://example.com/a?b=c",
            UnixMillis(0),
        )
    })
    .collect()
}

/// A product with a link in each of two languages, and one of another type.
fn product() -> Box<LinkSet> {
    let link = |link_type: &str, language: Option<&str>| TypedLink {
        link_type: link_type.into(),
        href: format!("https://example.com/{link_type}/{{01}}/{{10}}/{{21}}").into(),
        title: "".into(),
        media_type: None,
        hreflang: language.into_iter().map(Into::into).collect(),
        context: Vec::new(),
        from: None,
        to: None,
        default: language == Some("en"),
    };
    let links =
        vec![link("gs1:pip", Some("en")), link("gs1:pip", Some("de")), link("gs1:instructions", None)];
    Box::new(LinkSet { description: "".into(), serial_mode: SerialMode::Overrides, links })
}

impl Backing for Links {
    type Changes = Stream;

    async fn get(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        let value = links().into_iter().find(|link| link.short_id.as_str() == &*key.folded);
        let value = value.map(|link| (1, Arc::new(link)));
        Ok(Fill { epoch: "fuzz".into(), complete: true, watermark: 1, value })
    }

    async fn lookup(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        self.get(key).await
    }

    async fn changes(&self, _: Hello) -> Result<Stream, BackingError> {
        let welcome = Welcome {
            epoch: "fuzz".into(),
            head: 1,
            compacted: 0,
            start: Start::Snapshot { at_rev: 1 },
            domains: vec![ShortDomain {
                digital_links: true,
                ..ShortDomain::new(Scheme::Https, HOST).unwrap()
            }],
            rules: Vec::new(),
            withheld: Some(Vec::new()),
            kept: Vec::new(),
            kept_certificates: None,
            certificates: Vec::new(),
            challenges: Vec::new(),
        };
        Ok(Stream { welcome: Some(welcome), seq: 0 })
    }

    async fn page(&self, _: &str, _: &str) -> Result<LinksPage, BackingError> {
        let links = links().into_iter().map(|link| (link.short_id.as_str().into(), 1, link.into())).collect();
        Ok(LinksPage { epoch: "fuzz".into(), at_rev: 1, more: false, links })
    }

    async fn record_scans(&self, scans: &SpooledScans) -> Result<ScanReceipt, BackingError> {
        Ok(ScanReceipt { next_seq: scans.first_seq + scans.count as u64 })
    }
}

/// A welcome, then heartbeats.
struct Stream {
    welcome: Option<Welcome>,
    seq: u64,
}

impl Changes for Stream {
    async fn next(&mut self) -> Result<ToEdge, BackingError> {
        if let Some(welcome) = self.welcome.take() {
            return Ok(ToEdge::Welcome(welcome));
        }
        tokio::time::sleep(Duration::from_millis(HEARTBEAT_MS)).await;
        self.seq += 1;
        Ok(ToEdge::Heartbeat { seq: self.seq, head: 1 })
    }

    async fn send(&mut self, _: ToControl) -> Result<(), BackingError> {
        Ok(())
    }
}

#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_790_000_000_000)
    }
}
