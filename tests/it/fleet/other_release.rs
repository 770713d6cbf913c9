//! Peers of other releases against the real processes: members that they do not send, and members that are unknown
//! here.

use anyhow::{Context, Result, bail, ensure};
use bytes::BytesMut;
use reqwest::StatusCode;
use serde_json::{Value, json};
use shared::wire::{
    PROTOCOL,
    frame::Decoder,
    internal::STREAM_UPGRADE,
    stream::{ToControl, ToEdge},
};
use tests::{fleet::Fleet, product::DEADLINE, raw_edge::RawEdge};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// Kinds of frames as they are on the wire; a release never gives one another meaning.
mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const WELCOME: u8 = 2;
    pub(super) const EVENTS: u8 = 3;
    pub(super) const CHUNK: u8 = 4;
    pub(super) const END: u8 = 5;
    pub(super) const HEARTBEAT: u8 = 6;
    pub(super) const ACK: u8 = 8;
    /// Nobody knows it.
    pub(super) const NEWER: u8 = 77;
}

/// A frame by its bytes, not by our own encoder.
fn frame(kind: u8, body: &Value) -> Vec<u8> {
    let body = body.to_string().into_bytes();
    let mut bytes = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(crc32c::crc32c_append(crc32c::crc32c(&[kind]), &body).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Connects an edge that says and acknowledges what it is given, and sees whether it counts.
async fn is_taken(fleet: &Fleet, edge: &str, hello: Value, ack: fn(u64) -> Value) -> Result<()> {
    let key = fleet.edge_key(edge)?;
    let product = fleet.create_product(0).await?;
    let (status, stream) = RawEdge::open(&fleet.controls[0].internal, &key).await?;
    let mut stream = stream.with_context(|| format!("status {status}"))?;
    stream.io.write_all(&frame(kind::HELLO, &hello)).await?;
    let ToEdge::Welcome(welcome) = stream.next().await? else { bail!("no welcome for {hello}") };
    stream.io.write_all(&frame(kind::NEWER, &json!({"any": "thing"}))).await?;
    let follow = async {
        let mut applied = welcome.head;
        while applied == welcome.head {
            match stream.next().await? {
                ToEdge::Events(events) => applied = events.last,
                ToEdge::Heartbeat { .. } => {}
                other => bail!("{other:?}"),
            }
            stream.io.write_all(&frame(kind::ACK, &ack(applied))).await?;
        }
        Ok(())
    };
    let create = fleet.create_redirection(0, &product, None, "?wait=edges&timeout=20s");
    let (created, followed) = tokio::join!(create, follow);
    followed?;
    let (status, body) = created?;
    ensure!(status == StatusCode::CREATED && body["acked"] == 1 && body["members"] == 1, "{status} {body}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_of_the_next_release_follows_this_control() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let hello = json!({"proto": PROTOCOL + 1, "edge_id": "e1", "region": "main", "build": "next", "epoch": null,
        "applied": 0, "compression": ["zstd"]});
    is_taken(&fleet, "e1", hello, |applied| json!({"applied": applied, "rejected": [], "load": 0.5})).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_that_omits_new_members_follows_this_control() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let hello =
        json!({"proto": PROTOCOL, "edge_id": "e1", "region": "main", "build": "before", "applied": 0});
    is_taken(&fleet, "e1", hello, |applied| json!({"applied": applied})).await
}

/// The first stream that an edge opens, after its hello.
async fn accept(listener: &TcpListener) -> Result<(TcpStream, Decoder<ToControl>)> {
    loop {
        let (mut io, _) = listener.accept().await?;
        let mut head = BytesMut::new();
        while !head.ends_with(b"\r\n\r\n") && io.read_buf(&mut head).await? > 0 {}
        // Look-ups and scans come here too; they may fail.
        if !head.to_ascii_lowercase().windows(8).any(|part| part == b"upgrade:") {
            continue;
        }
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: {STREAM_UPGRADE}\r\n\r\n"
        );
        io.write_all(answer.as_bytes()).await?;
        let mut decoder = Decoder::default();
        let ToControl::Hello(_) = next(&mut io, &mut decoder).await? else { bail!("no hello") };
        return Ok((io, decoder));
    }
}

async fn next(io: &mut TcpStream, decoder: &mut Decoder<ToControl>) -> Result<ToControl> {
    loop {
        if let Some(message) = decoder.decode()? {
            return Ok(message);
        }
        ensure!(io.read_buf(&mut decoder.buffer).await? > 0, "the edge ended the stream");
    }
}

fn domain(host: &str) -> Value {
    json!({"host": host, "scheme": "https", "case_sensitive": false, "colour": "any"})
}

/// Serves one edge as a control that knows more, and gives what it acknowledged.
async fn serve(listener: TcpListener) -> Result<(u64, Vec<u64>, TcpStream)> {
    let (mut io, mut decoder) = accept(&listener).await?;
    let chunk = json!([{"tenants": {"any": "thing"}}, {"domain": domain("next.example")}]);
    let end = json!({"count": 2, "hash": blake3::hash(chunk.to_string().as_bytes()).to_hex().to_string(),
        "signature": "none"});
    let welcome = json!({"epoch": "of-the-next", "head": 5, "compacted": 0, "start": {"snapshot": {"at_rev": 5}},
        "regions": 3});
    let key = json!({"domain": "next.example", "folded": "OVER"});
    let link = json!({"domain": "next.example", "shortId": "OVER", "type": "product",
        "platformId": "U5Gq8sKVBfgRtKRaagBefgwk", "target": "https://example.com/", "createdAt": 1, "updatedAt": 1,
        "availability": {"validUntil": 2, "moon": "full"}, "hologram": true});
    let events = json!({"prev": 5, "last": 8, "part": 1, "items": [
        {"rev": 6, "change": {"tenant": ["any", "thing"]}},
        {"rev": 7, "change": {"domain": domain("later.example")}, "cause": "any"},
        {"rev": 8, "change": {"redirect": [key, link]}},
    ]});
    for (kind, body) in [
        (kind::WELCOME, &welcome),
        (kind::CHUNK, &chunk),
        (kind::NEWER, &json!([1, 2, 3])),
        (kind::END, &end),
        (kind::NEWER, &json!(null)),
        (kind::EVENTS, &events),
        (kind::HEARTBEAT, &json!({"seq": 1, "head": 8, "load": 0.5})),
    ] {
        io.write_all(&frame(kind, body)).await?;
    }
    let mut refused = Vec::new();
    loop {
        match next(&mut io, &mut decoder).await? {
            ToControl::Ack { applied, rejected } => {
                refused.extend(rejected.into_iter().map(|item| item.rev));
                if applied == 8 {
                    return Ok((applied, refused, io));
                }
            }
            other => bail!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_of_the_next_release_leads_this_edge() -> Result<()> {
    let fleet = Fleet::start(0).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let served = tokio::spawn(timeout(DEADLINE, serve(listener)));
    let mut settings = fleet.redis_settings.clone();
    settings.extend([("WAYMARK_CONTROL_URLS", url.clone()), ("WAYMARK_API_URLS", url)]);
    let edge = fleet.add_edge_with("e1", settings)?;
    let (applied, refused, _stream) = served.await???;
    assert_eq!((applied, refused), (8, vec![6]), "what is not known is refused by itself");
    for host in ["next.example", "later.example"] {
        let asked = fleet.http.get(format!("{}/ABC", edge.url)).header("host", host).send().await?;
        ensure!(asked.status() != StatusCode::MISDIRECTED_REQUEST, "{host} is not served");
    }
    let asked = fleet.http.get(format!("{}/ABC", edge.url)).header("host", "other.example").send().await?;
    ensure!(asked.status() == StatusCode::MISDIRECTED_REQUEST, "{}", asked.status());
    Ok(())
}
