//! An edge in a fleet: Redis and control over the network, and what is served when they are gone.

use std::{path::Path, time::Duration};

use edge::{
    DiskLimits,
    backing::{Backing, Changes},
};
use shared::{
    redirect::RedirectKey,
    wire::{
        internal::STREAM_UPGRADE,
        stream::{Hello, Start, ToEdge},
    },
    withheld::Withheld,
};

use crate::support::{Control, Files, HOST, Internal, Redis, Running, eventually, network, on_disk, request};

/// An address where nothing answers.
const NOBODY: &str = "https://127.0.0.1:9";

struct Fleet {
    control: Control,
    redis: Redis,
    internal: Internal,
    files: Files,
}

impl Fleet {
    async fn new() -> Self {
        let (control, redis) = (Control::new(), Redis::start().await);
        let (internal, files) = Internal::start(&control).await;
        Self { control, redis, internal, files }
    }

    /// An edge with its data in `folder`, of two replicas of which the first does not answer.
    fn edge(&self, folder: &Path) -> Running {
        let urls = [NOBODY.to_owned(), format!("https://{}", self.internal.address)];
        let (backing, _) = network(&urls, &self.files, &self.redis.url(), 16);
        Running::launch(backing, folder, None, on_disk)
    }

    async fn live(&self, folder: &Path) -> Running {
        let edge = self.edge(folder);
        eventually("the edge is live", || edge.handle.status().state == "LIVE").await;
        eventually("Redis answers", || edge.handle.status().view_up == Some(true)).await;
        edge
    }

    async fn publish(&self) {
        self.redis.publish(&self.control, self.control.head(), 16).await;
    }
}

fn key(short_id: &str) -> RedirectKey {
    RedirectKey::new(HOST, short_id)
}

/// What every backing does, whatever lies between.
async fn conforms(control: &Control, backing: &impl Backing) {
    let rev = control.put("ABC", "https://example.com/abc");
    let hello = Hello {
        proto: shared::wire::PROTOCOL,
        edge_id: "edge-2".into(),
        region: "r".into(),
        build: "b".into(),
        epoch: None,
        applied: 0,
        contents: Vec::new(),
        certificates: None,
    };
    let mut stream = backing.changes(hello.clone()).await.unwrap();
    let ToEdge::Welcome(welcome) = stream.next().await.unwrap() else { panic!("no welcome") };
    assert_eq!(
        (welcome.start, welcome.head, welcome.domains.len()),
        (Start::Snapshot { at_rev: rev }, rev, 1)
    );
    let next = control.put("DEF", "https://example.com/def");
    let events = loop {
        match stream.next().await.unwrap() {
            ToEdge::Events(events) => break events,
            ToEdge::Heartbeat { head, .. } => assert_eq!(head, rev),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((events.prev, events.last, events.items.len()), (rev, next, 1));
    let found = backing.lookup(&key("DEF")).await.unwrap();
    assert_eq!((found.watermark, found.value.unwrap().0), (next, next));
    assert!(backing.lookup(&key("NONE")).await.unwrap().value.is_none());
    for (short_id, expected) in
        [("DEF", Ok(format!("https://{HOST}/01/09506000134352"))), ("NONE", Err("none".to_owned()))]
    {
        assert_eq!(backing.digital_link(&key(short_id)).await.unwrap(), expected, "{short_id}");
    }
    let resumed = backing.changes(Hello { epoch: Some(welcome.epoch), applied: rev, ..hello }).await;
    let mut stream = resumed.unwrap();
    let ToEdge::Welcome(welcome) = stream.next().await.unwrap() else { panic!("no welcome") };
    assert_eq!((welcome.start, welcome.rules), (Start::Resume, Vec::new()));
}

#[tokio::test]
async fn both_backings_conform() {
    let control = Control::new();
    conforms(&control, &control).await;
    let fleet = Fleet::new().await;
    let urls = [format!("https://{}", fleet.internal.address)];
    let (backing, _) = network(&urls, &fleet.files, &fleet.redis.url(), 16);
    conforms(&fleet.control, &backing).await;
    fleet.publish().await;
    let found = backing.get(&key("ABC")).await.unwrap();
    assert_eq!((found.complete, found.watermark, found.value.unwrap().0), (true, 2, 1));
    let found = backing.get(&key("NONE")).await.unwrap();
    assert_eq!((found.complete, found.watermark, found.value), (true, 2, None));
    let setup = backing.setup().await.unwrap().unwrap();
    assert_eq!((setup.watermark, setup.domains.len()), (2, 1));
    // Another number of shards, no meta, a garbled one: nothing is said about the key.
    let (other, _) = network(&urls, &fleet.files, &fleet.redis.url(), 1);
    assert!(!other.get(&key("ABC")).await.unwrap().complete);
    fleet.redis.run(&["FLUSHALL"]).await;
    assert!(!backing.get(&key("ABC")).await.unwrap().complete);
    for shard in 0..16 {
        fleet.redis.run(&["SET", &shared::wire::view::meta_key(shard), "w1 nonsense"]).await;
    }
    assert!(!backing.get(&key("ABC")).await.unwrap().complete);
}

#[tokio::test]
async fn changes_reach_the_edge_whether_view_or_stream_is_ahead() {
    let fleet = Fleet::new().await;
    let folder = tempfile::tempdir().unwrap();
    fleet.control.put("OLD", "https://example.com/old");
    fleet.publish().await;
    let edge = fleet.live(folder.path()).await;
    edge.assert_leads("OLD", "https://example.com/old").await;
    assert_eq!(fleet.control.reads(), 0, "Redis answered");
    for round in 0..20 {
        let target = format!("https://example.com/{round}");
        fleet.control.acked(fleet.control.put("ABC", &target)).await;
        edge.assert_leads("ABC", &target).await;
    }
    edge.stop().await;
}

#[tokio::test]
async fn redis_flush_no_404_and_redis_rollback_no_regress() {
    let fleet = Fleet::new().await;
    let folder = tempfile::tempdir().unwrap();
    fleet.control.put("ABC", "https://example.com/1");
    fleet.control.put("DEF", "https://example.com/def");
    fleet.publish().await;
    let edge = fleet.live(folder.path()).await;
    fleet.redis.run(&["FLUSHALL"]).await;
    edge.assert_leads("DEF", "https://example.com/def").await;
    // Rolled back to before a change that the edge has acknowledged, and before the link was there.
    let rev = fleet.control.put("ABC", "https://example.com/2");
    fleet.control.put("NEW", "https://example.com/new");
    fleet.control.acked(rev + 1).await;
    fleet.redis.publish(&fleet.control, rev - 1, 16).await;
    edge.assert_leads("ABC", "https://example.com/2").await;
    edge.assert_leads("NEW", "https://example.com/new").await;
    edge.stop().await;
}

#[tokio::test]
async fn redis_down_serve() {
    let mut fleet = Fleet::new().await;
    let folder = tempfile::tempdir().unwrap();
    fleet.control.put("ABC", "https://example.com/abc");
    fleet.control.put("DEF", "https://example.com/def");
    fleet.publish().await;
    let edge = fleet.live(folder.path()).await;
    edge.assert_leads("ABC", "https://example.com/abc").await;
    let port = fleet.redis.port;
    drop(std::mem::replace(&mut fleet.redis, Redis::start().await));
    // What is not held shows that Redis is gone, and is read at control.
    edge.assert_leads("ABC", "https://example.com/abc").await;
    edge.assert_leads("DEF", "https://example.com/def").await;
    assert_eq!(fleet.control.reads(), 1, "one look-up, for what was not held");
    eventually("the edge notices", || edge.handle.status().view_up == Some(false)).await;
    fleet.control.acked(fleet.control.put("ABC", "https://example.com/2")).await;
    edge.assert_leads("ABC", "https://example.com/2").await;
    fleet.redis = Redis::start_on(port).await;
    eventually("Redis is back", || edge.handle.status().view_up == Some(true)).await;
    edge.stop().await;
}

#[tokio::test]
async fn both_down_boot_from_disk() {
    let fleet = Fleet::new().await;
    let folder = tempfile::tempdir().unwrap();
    fleet.control.put("ABC", "https://example.com/1");
    fleet.control.put("DEF", "https://example.com/def");
    fleet.control.put_rules(&[("hour<0", None)]);
    let edge = fleet.live(folder.path()).await;
    edge.assert_leads("ABC", "https://example.com/1").await;
    edge.assert_leads("DEF", "https://example.com/def").await;
    assert_eq!(edge.get("/NONE", &[]).await.status, 404);
    edge.stop().await;
    let Fleet { control, redis, files, .. } = fleet;
    let port = redis.port;
    drop(redis);

    // Neither control nor Redis.
    control.faults(|faults| faults.is_down = true);
    let (backing, _) = network(&[NOBODY.to_owned()], &files, &format!("redis://127.0.0.1:{port}"), 16);
    let disk = |config: &mut edge::EdgeConfig| config.disk = Some(DiskLimits::default());
    let edge = Running::launch(backing, folder.path(), None, disk);
    edge.assert_leads("ABC", "https://example.com/1").await;
    edge.assert_leads("DEF", "https://example.com/def").await;
    assert_eq!(edge.get("/NONE", &[]).await.status, 404, "known to be absent");
    assert_eq!(edge.get("/OTHER", &[]).await.status, 503);
    let ready = request(edge.admin, "GET", "admin", "/ready", &[]).await;
    let body = ready.json();
    assert_eq!((ready.status, &body["state"], &body["boot"]), (200, &"STALE".into(), &"disk".into()));
    edge.stop().await;

    // Control is back, and has changed what the disk knows.
    let rev = control.put("ABC", "https://example.com/2");
    control.delete("DEF");
    control.faults(|faults| faults.is_down = false);
    let (internal, files) = Internal::start(&control).await;
    let urls = [format!("https://{}", internal.address)];
    let (backing, _) = network(&urls, &files, &format!("redis://127.0.0.1:{port}"), 16);
    let edge = Running::launch(backing, folder.path(), None, disk);
    control.acked(rev + 1).await;
    edge.assert_leads("ABC", "https://example.com/2").await;
    assert_eq!(edge.get("/DEF", &[]).await.status, 404);
    let last = control.hellos().pop().unwrap();
    assert_eq!((last.epoch.as_deref(), last.applied), (Some("first"), rev - 1), "resumed from the disk");
    eventually("it is live", || edge.handle.status().boot.is_none()).await;
    edge.stop().await;
}

#[tokio::test]
async fn boot_from_the_view_alone() {
    let fleet = Fleet::new().await;
    let folder = tempfile::tempdir().unwrap();
    fleet.control.put("ABC", "https://example.com/abc");
    fleet.control.put("GONE", "https://example.com/gone");
    fleet.control.withhold(Withheld::Link(key("GONE")), true);
    fleet.publish().await;
    let (backing, _) = network(&[NOBODY.to_owned()], &fleet.files, &fleet.redis.url(), 16);
    let edge = Running::launch(backing, folder.path(), None, |_| {});
    eventually("it begins from the view", || edge.handle.status().boot == Some("view")).await;
    edge.assert_leads("ABC", "https://example.com/abc").await;
    assert_eq!(edge.get("/NONE", &[]).await.status, 404);
    assert_eq!(edge.get("/GONE", &[]).await.status, 451);
    edge.stop().await;
}

#[tokio::test]
async fn a_key_is_exchanged_without_a_restart() {
    let fleet = Fleet::new().await;
    let folder = tempfile::tempdir().unwrap();
    fleet.control.put("ABC", "https://example.com/abc");
    let edge = fleet.live(folder.path()).await;
    std::fs::write(&fleet.files.key, "KEY2").unwrap();
    // Both are known for a while; then the old one is revoked, which ends the stream.
    fleet.internal.allow(&["KEY2"]);
    fleet.control.acked(fleet.control.put("ABC", "https://example.com/2")).await;
    // Requests too: Redis is empty, so this asks control; the redirect's scan is shipped.
    edge.assert_leads("ABC", "https://example.com/2").await;
    eventually("the scan arrives", || !fleet.control.scans().is_empty()).await;
    // A key that nobody knows: what is held is served on.
    fleet.internal.allow(&["KEY3"]);
    eventually("the edge notices", || edge.handle.status().state == "STALE").await;
    edge.assert_leads("ABC", "https://example.com/2").await;
    std::fs::write(&fleet.files.key, "KEY3").unwrap();
    eventually("the edge is back", || edge.handle.status().state == "LIVE").await;
    edge.stop().await;
}

/// Asks for a short id again and again on one connection, a hundred requests at a time.
/// Takes every request to upgrade, and says nothing any more.
async fn upgrade_and_be_silent(listener: tokio::net::TcpListener) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut held = Vec::new();
    loop {
        let (mut io, _) = listener.accept().await.unwrap();
        let mut head = bytes::BytesMut::new();
        while !head.ends_with(b"\r\n\r\n") && io.read_buf(&mut head).await.unwrap_or(0) > 0 {}
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: {STREAM_UPGRADE}\r\n\r\n"
        );
        let _ = io.write_all(answer.as_bytes()).await;
        held.push(io);
    }
}

/// A control that takes the stream and sends no welcome is left within a second, as another may answer.
#[tokio::test]
async fn an_edge_does_not_wait_for_a_welcome_while_another_control_may_answer() {
    let fleet = Fleet::new().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let urls =
        [format!("http://{}", silent.local_addr().unwrap()), format!("https://{}", fleet.internal.address)];
    tokio::spawn(upgrade_and_be_silent(silent));
    // Each begins with either of the two, by chance.
    for _ in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let begun = tokio::time::Instant::now();
        let (backing, _) = network(&urls, &fleet.files, &fleet.redis.url(), 16);
        let edge = Running::launch(backing, folder.path(), None, |_| {});
        eventually("the edge is live", || edge.handle.status().state == "LIVE").await;
        assert!(begun.elapsed() < Duration::from_secs(4), "it waited for {:?}", begun.elapsed());
        edge.stop().await;
    }
}

async fn pour(plain: std::net::SocketAddr, hundreds: usize) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut tcp = tokio::net::TcpStream::connect(plain).await.unwrap();
    let agent =
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
    let ask = format!("GET /ABC HTTP/1.1\r\nhost: {HOST}\r\nuser-agent: {agent}\r\n\r\n").repeat(100);
    let mut buffer = vec![0; 64 << 10];
    for _ in 0..hundreds {
        tcp.write_all(ask.as_bytes()).await.unwrap();
        let (mut answers, mut tail) = (0, Vec::new());
        while answers < 100 {
            let read = tcp.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the edge closed");
            tail.extend_from_slice(&buffer[..read]);
            answers += tail.windows(12).filter(|window| window == b"HTTP/1.1 307").count();
            // What may be the beginning of an answer stays.
            tail.drain(..tail.len().saturating_sub(11));
        }
    }
}

/// As long as a fleet is upgraded, an edge may speak with a control of the version before at any time.
#[tokio::test]
async fn scans_are_shipped_in_spool_format_where_control_accepts_it() {
    let fleet = Fleet::new().await;
    let folder = tempfile::tempdir().unwrap();
    fleet.control.put("ABC", "https://example.com/abc");
    fleet.publish().await;
    let edge = fleet.live(folder.path()).await;
    let mut count = 0;
    let mut expected = Vec::new();
    for (takes_only_json, spooled) in
        [(false, false), (false, true), (true, false), (true, false), (false, false), (false, true)]
    {
        fleet.control.faults(|faults| faults.takes_only_json = takes_only_json);
        edge.assert_leads("ABC", "https://example.com/abc").await;
        count += 1;
        eventually("the scan arrives", || fleet.control.count_scans() == count).await;
        expected.push(spooled);
    }
    assert_eq!(fleet.control.spooled(), expected);
    edge.stop().await;
    assert_eq!(fleet.control.count_scans(), count, "each once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_during_an_outage_arrive_exactly_once() {
    const SCANS: usize = 20_000;
    let fleet = Fleet::new().await;
    let folder = tempfile::tempdir().unwrap();
    fleet.control.put("ABC", "https://example.com/abc");
    fleet.publish().await;
    let edge = fleet.live(folder.path()).await;
    edge.assert_leads("ABC", "https://example.com/abc").await;
    fleet.control.faults(|faults| faults.refuses_scans = true);
    let begun = std::time::Instant::now();
    tokio::join!(pour(edge.plain, SCANS / 200), pour(edge.plain, SCANS / 200));
    let arrival = SCANS as f64 / begun.elapsed().as_secs_f64();
    eventually("all are on disk", || edge.handle.status().scans.written > SCANS as u64).await;
    let before = fleet.control.count_scans();
    fleet.control.faults(|faults| faults.refuses_scans = false);
    eventually("control takes scans again", || fleet.control.count_scans() > before).await;
    let (begun, first) = (std::time::Instant::now(), fleet.control.count_scans());
    eventually("all have arrived", || fleet.control.count_scans() == SCANS + 1).await;
    let drain = (SCANS + 1 - first) as f64 / begun.elapsed().as_secs_f64();
    println!("arrival {arrival:.0}/s, drain {drain:.0}/s, ratio {:.1}", drain / arrival);
    edge.stop().await;
}
