//! The fast path gives the answers of hyper, to the byte, and records the same scans.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use edge::{Connector, Edge, EdgeConfig, EdgeError, Listeners};
use proptest::{
    prelude::{Rng, RngExt},
    test_runner::{RngAlgorithm, TestRng},
};
use replica::ReplicaState;
use serde_json::json;
use shared::{
    availability::Availability,
    domain_paths::DomainPaths,
    redirect::{Redirect, RedirectKey},
    redirect_status::RedirectStatus,
    short_url::{Scheme, ShortDomain},
    time::{ManualClock, UnixMillis},
    wire::{scan::ScanRecord, stream::Change},
    withheld::Withheld,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::{
    digital_links::{level, put_product},
    support::{Control, HOST, SharedClock, account, answered, eventually, exchange_bytes, normal, redirect},
};

/// Changed requests that are compared; `WAYMARK_PLAIN_CASES` says another number.
const CASES: u64 = 3_000;

/// Who asks.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 50_000);

/// Requests, and what else a connection may begin with. `{H}` is the host line.
const REQUESTS: [&str; 81] = [
    "GET /ABC HTTP/1.1\r\n{H}\r\n",
    "HEAD /ABC HTTP/1.1\r\n{H}\r\n",
    "GET /abc HTTP/1.1\r\nhost: TN.GG\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}User-Agent: Mozilla/5.0 (iPhone)\r\nAccept: text/html,*/*;q=0.8\r\nAccept-Language: de-DE,de;q=0.9\r\nReferer: https://a.example/x?access_token=k\r\nConnection: keep-alive\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}User-Agent: one\r\nUser-Agent: two\r\nAccept: */*\r\nAccept: application/json\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}User-Agent: \t padded \t \r\nAccept:\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}User-Agent: \u{e9}\u{20ac}\r\nAccept-Language: \u{e9}\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}Cookie: a=b\r\nUpgrade-Insecure-Requests: 1\r\nSec-Fetch-Mode: navigate\r\n\r\n",
    "\r\n\r\nGET /ABC HTTP/1.1\r\n{H}\r\n",
    "GET /ABC HTTP/1.1\n{H}\n",
    "GET /QUERY HTTP/1.1\r\n{H}\r\n",
    "GET /QUERY?a=1 HTTP/1.1\r\n{H}\r\n",
    "GET /ABC?access_token=k HTTP/1.1\r\n{H}\r\n",
    "GET /WITHHELD HTTP/1.1\r\n{H}\r\n",
    "GET /L301 HTTP/1.1\r\n{H}\r\n",
    "HEAD /L301 HTTP/1.1\r\n{H}\r\n",
    "GET /L302 HTTP/1.1\r\n{H}\r\n",
    "GET /L308 HTTP/1.1\r\n{H}Accept: text/html\r\n\r\n",
    "HEAD /L308 HTTP/1.1\r\n{H}\r\n",
    "GET /L301?a=1 HTTP/1.1\r\n{H}\r\n",
    "GET /OPEN HTTP/1.1\r\n{H}\r\n",
    "GET /SOON HTTP/1.1\r\n{H}\r\n",
    "HEAD /SOON HTTP/1.1\r\n{H}Accept: text/html\r\n\r\n",
    "GET /OVER HTTP/1.1\r\n{H}\r\n",
    "GET /SOON.png?w=60 HTTP/1.1\r\n{H}\r\n",
    "GET /NONE HTTP/1.1\r\n{H}\r\n",
    "GET /NONE HTTP/1.1\r\n{H}Accept: text/html,*/*\r\n\r\n",
    "GET /NONE HTTP/1.1\r\n{H}Accept: text/html,*/*\r\nAccept-Language: xx,ar;q=0.5\r\n\r\n",
    "GET /NONE HTTP/1.1\r\n{H}Accept-Language: de\r\n\r\n",
    "GET /OVER HTTP/1.1\r\n{H}Accept: text/html\r\nAccept-Language: de\r\n\r\n",
    "HEAD /NONE HTTP/1.1\r\n{H}\r\n",
    "HEAD /NONE HTTP/1.1\r\n{H}Accept: text/html\r\n\r\n",
    "GET /ABC.png?w=60 HTTP/1.1\r\n{H}\r\n",
    "GET /ABC.gif HTTP/1.1\r\n{H}\r\n",
    "GET /ABC HTTP/1.1\r\n{H}Accept: image/png\r\n\r\n",
    "GET / HTTP/1.1\r\n{H}\r\n",
    "GET /robots.txt HTTP/1.1\r\n{H}\r\n",
    "GET /a/b HTTP/1.1\r\n{H}\r\n",
    "GET /shop/go/ABC HTTP/1.1\r\n{H}\r\n",
    "HEAD /SHOP/Go/abc HTTP/1.1\r\n{H}Accept: text/html\r\n\r\n",
    "GET /sale/2026/shoes HTTP/1.1\r\n{H}\r\n",
    "GET /shop/go/NONE HTTP/1.1\r\n{H}Accept: text/html\r\n\r\n",
    "GET //ABC HTTP/1.1\r\n{H}\r\n",
    "GET /.well-known/acme-challenge/ABC HTTP/1.1\r\n{H}\r\n",
    "GET /%41BC HTTP/1.1\r\n{H}\r\n",
    "GET /ABC HTTP/1.1\r\nHost: other.example\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}{H}\r\n",
    "GET /ABC HTTP/1.0\r\n{H}\r\n",
    "GET /ABC HTTP/1.0\r\n{H}Connection: keep-alive\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}Connection: close\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}Content-Length: 3\r\n\r\nabc",
    "GET /ABC HTTP/1.1\r\n{H}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}Expect: 100-continue\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}Authorization: k\r\n\r\n",
    "GET /ABC HTTP/1.1\r\n{H}X: a\r\n folded\r\n\r\n",
    "GET /ABC HTTP/1.1\r\nHost : tn.gg\r\n\r\n",
    "GET http://tn.gg/ABC HTTP/1.1\r\n{H}\r\n",
    "POST /ABC HTTP/1.1\r\n{H}Content-Length: 0\r\n\r\n",
    "GET /ABC\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}",
    "GET /01/09528765123457 HTTP/1.1\r\n{H}\r\n",
    "HEAD /01/09528765123457/21/S HTTP/1.1\r\n{H}Accept: text/html,*/*\r\n\r\n",
    "GET /01/09528765123457/21/S_.- HTTP/1.1\r\n{H}Accept-Language: de\r\nUser-Agent: a\r\nReferer: https://a.example/\r\n\r\n",
    "GET /01/09528765123457/21/S HTTP/1.1\r\n{H}Accept: image/png\r\nAccept-Language: pt-BR,de;q=0.5\r\n\r\n",
    "GET /01/09528765123457/21/A%2FB HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123457/21/Abc HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123457/21/M HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123457/21/OVER HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123457/21/WITHHELD HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123457/22/V/10/L1/21/S/ HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123457/10/L1.png HTTP/1.1\r\n{H}\r\n",
    "GET /some/stem/01/09528765123457 HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123457/17/261231 HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123458 HTTP/1.1\r\n{H}Accept: text/html\r\n\r\n",
    "GET /01/09506000134352 HTTP/1.1\r\n{H}\r\n",
    "GET /01/09528765123457 HTTP/1.1\r\n{H}Accept: application/linkset+json\r\n\r\n",
    "GET /exMBZFlvQMDly-mRqD HTTP/1.1\r\n{H}\r\n",
];

/// An edge without connections of its own: they are made in memory.
struct Twin {
    control: Control,
    connector: Connector<Control>,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), EdgeError>>,
    _folder: TempDir,
}

impl Twin {
    async fn start(is_fast: bool, redirect_max_age: Option<u32>) -> Self {
        let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
        let mut config = EdgeConfig::new(
            "edge-1",
            folder.path().to_owned(),
            "http://127.0.0.1:9",
            "https://docs.test/docs",
        );
        config.fast_redirects = is_fast;
        config.is_replica = true;
        // What is changed at random is often too much.
        (config.limits.misses_per_address, config.limits.misses_per_second) = (1_000_000, 1_000_000);
        let clock = SharedClock(Arc::new(ManualClock::new(UnixMillis(1_790_000_000_000))));
        let edge = Edge::open(config, control.clone(), None, clock).unwrap();
        let (handle, shutdown) = (edge.handle(), CancellationToken::new());
        let connector = edge.connector(shutdown.clone());
        // Nobody connects to it; an edge without any socket would be done.
        let plain = vec![std::net::TcpListener::bind("127.0.0.1:0").unwrap()];
        let listeners = Listeners { plain, ..Listeners::default() };
        let task = tokio::spawn(edge.serve(listeners, shutdown.clone()));
        for short_id in ["ABC", "WITHHELD", "sale/2026/shoes"] {
            control.put(short_id, "https://example.com/a?b=c");
        }
        for status_code in RedirectStatus::ALL {
            let short_id = format!("L{}", status_code.as_u16());
            control.put_record(Redirect { status_code, ..redirect(&short_id, "https://example.com/moved") });
        }
        let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
        let path_prefix = "shop/go".parse().ok();
        let paths = DomainPaths { path_prefix, multi_segment: true, ..DomainPaths::default() };
        let account = Some(account());
        let domain = ShortDomain { account, redirect_max_age, paths, digital_links: true, ..domain };
        control.commit([Change::Domain(domain)]);
        for short_id in ["WITHHELD", "01/09528765123457/21/WITHHELD"] {
            control.withhold(Withheld::Link(RedirectKey::new(HOST, short_id)), true);
        }
        put_product(&control, "known");
        let links = json!([{"linkType": "gs1:dpp", "href": "https://a.example/{10}/{21}", "title": "", "default": true}]);
        let of = |short_id| level(&format!("01/09528765123457/{short_id}"), "known", &links);
        control.put_record(of("10/L1"));
        control.put_record(Redirect { status_code: RedirectStatus::MovedPermanently, ..of("21/M") });
        let (past, future) = (Some(UnixMillis(1)), Some(UnixMillis(i64::MAX)));
        for (short_id, valid_from, valid_until) in
            [("OPEN", past, future), ("SOON", future, None), ("OVER", None, past)]
        {
            let ended_url = (short_id == "OVER").then(|| "https://example.com/over".into());
            let availability = Availability { valid_from, valid_until, ended_url, ..Availability::default() };
            let availability = Some(Box::new(availability));
            let status_code = RedirectStatus::PermanentRedirect;
            let link = redirect(short_id, "https://example.com/");
            if short_id == "OVER" {
                control.put_record(Redirect { availability: availability.clone(), ..of("21/OVER") });
            }
            control.put_record(Redirect { availability, status_code, ..link });
        }
        let query = Redirect { forward_query: true, ..redirect("QUERY", "https://example.com/q") };
        control.acked(control.put_record(query)).await;
        eventually("all links are held", || {
            handle.status().replica.is_some_and(|replica| replica.state == ReplicaState::Whole)
        })
        .await;
        for request in REQUESTS.into_iter().filter(|request| request.contains("png")) {
            answered(&connector, CLIENT, &bytes(request)).await;
        }
        Self { control, connector, shutdown, task, _folder: folder }
    }

    /// What it recorded, once it has shipped it.
    async fn scans(self) -> Vec<ScanRecord> {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
        self.control.scans().into_iter().map(|(_, _, scan)| scan).collect()
    }
}

/// An edge with the fast path and one without.
struct Twins {
    fast: Twin,
    hyper: Twin,
}

impl Twins {
    async fn start() -> Self {
        Self::with_age(None).await
    }

    /// Twins whose domain says how long redirects may be kept.
    async fn with_age(age: Option<u32>) -> Self {
        Self { fast: Twin::start(true, age).await, hyper: Twin::start(false, age).await }
    }

    /// Sends the same parts to both and asserts that the answers are the same.
    async fn compare(&self, parts: &[&[u8]]) {
        let ask = async |twin: &Twin, parts: &[&[u8]]| {
            let parts = parts.iter().map(|part| part.to_vec()).collect();
            normal(&exchange_bytes(&twin.connector, CLIENT, parts).await)
        };
        let (fast, hyper) = (ask(&self.fast, parts).await, ask(&self.hyper, parts).await);
        if fast != hyper {
            // A request with a fault that never ends is refused by hyper or not, as its parts come.
            let at_once = ask(&self.hyper, &[&parts.concat()]).await;
            let shown: Vec<_> = parts.iter().map(|part| String::from_utf8_lossy(part)).collect();
            assert_eq!(fast, at_once, "{hyper:?} to {shown:?}");
        }
    }
}

fn bytes(request: &str) -> Vec<u8> {
    request.replace("{H}", &format!("Host: {HOST}\r\n")).into_bytes()
}

#[tokio::test]
async fn every_request_gets_the_answer_of_hyper_however_it_is_split() {
    let twins = Twins::start().await;
    for request in REQUESTS {
        let request = bytes(request);
        twins.compare(&[&request]).await;
        for at in 1..request.len() {
            let (first, second) = request.split_at(at);
            twins.compare(&[first, second]).await;
        }
        let single: Vec<&[u8]> = request.chunks(1).collect();
        twins.compare(&single).await;
    }
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_order() {
    let twins = Twins::start().await;
    let plain = bytes(REQUESTS[0]);
    for request in REQUESTS {
        let request = bytes(request);
        for parts in
            [vec![&plain[..], &request], vec![&request, &plain], vec![&plain, &plain, &request, &plain]]
        {
            twins.compare(&parts).await;
            twins.compare(&[&parts.concat()]).await;
        }
    }
    twins.compare(&[&plain.repeat(700)]).await; // More than is written at once, and one at every place of the buffer.
    // Headers as long as the buffer of the fast path, and as many as it takes, and more of both.
    for (name, length, count) in [
        ("X", 4_000, 1),
        ("X", 4_010, 1),
        ("X", 5_000, 1),
        ("Y", 1, 31),
        ("Y", 1, 32),
        ("Y", 1, 63),
        ("Y", 1, 64),
    ] {
        let line = format!("{name}: {}\r\n", "x".repeat(length));
        let request = bytes(&format!("GET /ABC HTTP/1.1\r\n{{H}}{}\r\n", line.repeat(count)));
        twins.compare(&[&request]).await;
        twins.compare(&[&plain, &request, &plain]).await;
    }
}

#[tokio::test]
async fn both_record_the_same_scans() {
    let twins = Twins::start().await;
    for request in REQUESTS {
        twins.compare(&[&bytes(request)]).await;
    }
    let [fast, hyper] = [twins.fast.scans().await, twins.hyper.scans().await];
    let linked = fast.iter().filter(|scan| scan.digital_link.is_some()).count();
    assert!(linked >= 10 && fast.len() - linked >= 14, "{fast:?}");
    assert_eq!(fast, hyper);
}

#[tokio::test]
async fn the_age_of_redirects_is_that_of_hyper() {
    for age in [0, 60, 86_400] {
        let twins = Twins::with_age(Some(age)).await;
        for request in REQUESTS {
            twins.compare(&[&bytes(request)]).await;
        }
        for code in RedirectStatus::ALL.map(RedirectStatus::as_u16) {
            for method in ["GET", "HEAD"] {
                let request = bytes(&format!("{method} /L{code} HTTP/1.1\r\n{{H}}\r\n"));
                let answer = exchange_bytes(&twins.fast.connector, CLIENT, vec![request.clone()]).await;
                let answer = normal(&answer);
                let age = format!("\r\ncache-control: public, max-age={age}, must-revalidate\r\n");
                let is_so = answer.starts_with(&format!("HTTP/1.1 {code} ")) && answer.contains(&age);
                assert!(is_so, "{answer}");
                twins.compare(&[&request]).await;
            }
        }
        let [fast, hyper] = [twins.fast.scans().await, twins.hyper.scans().await];
        assert_eq!(fast.len(), hyper.len() + RedirectStatus::ALL.len());
    }
}

/// The client reads nothing until the edge has begun to stop, and then all: the answer that was half written then is
/// finished, whoever answers the connection.
#[tokio::test]
async fn an_answer_that_is_half_written_is_finished_when_the_edge_stops() {
    let twins = Twins::start().await;
    for twin in [twins.fast, twins.hyper] {
        // Less room than an answer needs.
        let (mut near, far) = tokio::io::duplex(64);
        let stop = async {
            near.write_all(&bytes(REQUESTS[0])).await.unwrap();
            near.write_all(&bytes(REQUESTS[0])).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            twin.shutdown.cancel();
            // Longer than connections without a request are left alone.
            tokio::time::sleep(Duration::from_millis(600)).await;
            let mut answers = Vec::new();
            near.read_to_end(&mut answers).await.unwrap();
            normal(&answers)
        };
        let ((), answers) = tokio::join!(twin.connector.serve(far, CLIENT), stop);
        for answer in answers.split_inclusive("\r\n\r\n") {
            let is_whole = answer.starts_with("HTTP/1.1 307 ")
                && answer.contains("\r\nlocation: https://example.com/a?b=c\r\n")
                && answer.ends_with("\r\n\r\n");
            assert!(is_whole, "{answer:?} of {answers:?}");
        }
        assert!(!answers.is_empty());
        twin.task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn changed_requests_get_the_answer_of_hyper() {
    let cases = std::env::var("WAYMARK_PLAIN_CASES").map_or(CASES, |cases| cases.parse().unwrap());
    let twins = Twins::start().await;
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[27; 32]);
    for _ in 0..cases {
        let mut sent = Vec::new();
        for _ in 0..random.random_range(1..=3) {
            sent.extend(bytes(REQUESTS[random.random_range(0..REQUESTS.len())]));
        }
        for _ in 0..random.random_range(0..=3) {
            change(&mut sent, &mut random);
        }
        let at = random.random_range(0..=sent.len());
        let (first, second) = sent.split_at(at);
        twins.compare(&[first, second]).await;
    }
}

/// Changes, doubles, moves or removes some bytes.
fn change(bytes: &mut Vec<u8>, random: &mut impl Rng) {
    const MARKS: &[u8] = b"\r\n\t :/?%#.,;0\0\x7f\xffAa-";
    if bytes.is_empty() {
        return;
    }
    let at = random.random_range(0..bytes.len());
    match random.random_range(0..5) {
        0 => bytes[at] = MARKS[random.random_range(0..MARKS.len())],
        1 => bytes[at] = random.random(),
        2 => bytes.insert(at, MARKS[random.random_range(0..MARKS.len())]),
        3 => drop(bytes.remove(at)),
        _ => {
            let end = (at + random.random_range(1..20)).min(bytes.len());
            let some = bytes[at..end].to_vec();
            let to = random.random_range(0..=bytes.len());
            bytes.splice(to..to, some);
        }
    }
}
