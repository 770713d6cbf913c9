//! A key that is revoked on one replica: refused by all within a second, and its open streams end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tests::{
    fleet::Fleet,
    mqtt::{Client, Hello},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// As the guide says.
const SOON: Duration = Duration::from_secs(1);

async fn make(fleet: &Fleet, label: &str) -> Result<(String, String)> {
    let (status, made) = fleet.call(0, Method::POST, "/keys", Some(json!({"label": label}))).await?;
    ensure!(status == StatusCode::CREATED, "{status} {made}");
    let text = |member: &str| Ok::<_, anyhow::Error>(made[member].as_str().context("text")?.to_owned());
    Ok((text("id")?, text("apiKey")?))
}

async fn status(fleet: &Fleet, at: usize, key: &str) -> Result<u16> {
    let url = format!("{}/access", fleet.controls[at].api);
    Ok(fleet.http.get(url).header("authorization", key).send().await?.status().as_u16())
}

/// An open stream of events.
async fn events(fleet: &Fleet, at: usize, key: &str) -> Result<Response> {
    let url = format!("{}/events", fleet.controls[at].api);
    let request = fleet.http.get(url).header("authorization", key).header("accept", "text/event-stream");
    let mut response = request.send().await?;
    ensure!(response.status() == 200, "{response:?}");
    response.chunk().await?.context("no first piece")?;
    Ok(response)
}

/// A plain WebSocket that hears scans.
async fn socket(fleet: &Fleet, at: usize, key: &str) -> Result<TcpStream> {
    let address = fleet.controls[at].api.strip_prefix("http://").context("http")?;
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET /actions/scans?access_token={key} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    Ok(stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_ends_everywhere_within_a_second() -> Result<()> {
    let fleet = Fleet::start(2).await?;
    let (id, key) = make(&fleet, "to be revoked").await?;
    let (_, other) = make(&fleet, "stays").await?;
    // Each replica knows the key and has streams of it.
    for at in [0, 1] {
        ensure!(status(&fleet, at, &key).await? == 200);
    }
    let mut told = events(&fleet, 1, &key).await?;
    let mut kept = events(&fleet, 1, &other).await?;
    let mut heard = socket(&fleet, 1, &key).await?;
    let broker = Client::enter(&fleet.controls[1].mqtt, &Hello::new("one", &key)).await?;
    let local = Client::enter(&fleet.controls[0].mqtt, &Hello::new("two", &key)).await?;
    // Looked up a moment ago, so that it is cached.
    ensure!(status(&fleet, 1, &key).await? == 200);

    let (code, body) = fleet.call(0, Method::DELETE, &format!("/keys/{id}"), None).await?;
    let revoked = Instant::now();
    ensure!(code == StatusCode::OK && body == Value::Null, "{code} {body}");
    ensure!(status(&fleet, 0, &key).await? == 401, "here at once");
    let refused = async {
        while status(&fleet, 1, &key).await? != 401 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(revoked.elapsed())
    };
    let ended = async {
        while told.chunk().await?.is_some() {}
        anyhow::Ok(revoked.elapsed())
    };
    let closed = async {
        let mut frames = Vec::new();
        heard.read_to_end(&mut frames).await?;
        // A close frame with the code 1008 (policy) and the reason.
        ensure!(frames.windows(2).any(|pair| pair == 1_008_u16.to_be_bytes()), "{frames:?}");
        Ok(revoked.elapsed())
    };
    let disconnected = async |client: Client| {
        let reason = client.ended().await?;
        // MQTT 5: not authorized.
        ensure!(reason == Some(0x87), "{reason:?}");
        anyhow::Ok(revoked.elapsed())
    };
    let all = async { tokio::try_join!(refused, ended, closed, disconnected(broker), disconnected(local)) };
    let took = timeout(Duration::from_secs(20), all).await.context("a stream stays open")??;
    println!("refused, events, WebSocket, MQTT there, MQTT here: {took:?}");
    for took in [took.0, took.1, took.2, took.3, took.4] {
        ensure!(took <= SOON, "{took:?}");
    }
    // Others of the account go on.
    ensure!(status(&fleet, 1, &other).await? == 200);
    let scan = fleet.call(0, Method::POST, "/actions/scans", Some(json!({}))).await?;
    ensure!(scan.0 == StatusCode::CREATED, "{scan:?}");
    ensure!(timeout(Duration::from_secs(10), kept.chunk()).await??.is_some());
    Ok(())
}

/// By the command, which another process runs; by id and with an overlap, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_rotate_and_revoke_keys_by_id() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let made = fleet.control_ok(&["keys", "create", "--label", "line 3", "--expires-in", "90d"])?;
    ensure!(made.starts_with("wmop") && status(&fleet, 0, &made).await? == 200, "{made}");
    let row = async |label: &str| {
        let list = fleet.control_ok(&["keys", "list"])?;
        let row = list.lines().rfind(|line| line.contains(label)).context(list.clone())?.to_owned();
        anyhow::Ok(row.split('\t').map(str::to_owned).collect::<Vec<_>>())
    };
    let listed = row("line 3").await?;
    ensure!(listed.len() == 6 && listed[0].len() == 24 && listed[1] == "line 3", "{listed:?}");
    ensure!(listed[2].starts_with("made 20") && listed[3].starts_with("used "), "{listed:?}");
    ensure!(listed[4].starts_with("expires 20") && listed[5] == "valid", "{listed:?}");
    let next = fleet.control_ok(&["keys", "rotate", &listed[0], "--overlap", "1h"])?;
    for key in [&made, &next] {
        ensure!(status(&fleet, 0, key).await? == 200, "both work");
    }
    // By the key itself, at once.
    let last = fleet.control_ok(&["keys", "rotate", &next])?;
    ensure!((status(&fleet, 0, &next).await?, status(&fleet, 0, &last).await?) == (401, 200));
    fleet.control_ok(&["keys", "revoke", &listed[0]])?;
    ensure!(status(&fleet, 0, &made).await? == 401);
    ensure!(row(&listed[0]).await?[5].starts_with("revoked 20"));
    for (args, code, said) in [
        (vec!["keys", "revoke", &listed[0]], 1, ""),
        (vec!["keys", "rotate", &listed[0]], 1, "no such key that is valid"),
        (vec!["keys", "rotate", &last, "--overlap", "31d"], 64, "at most 30d"),
        (vec!["keys", "rotate", &last, "--overlap", "1w"], 64, "no time such as"),
        (vec!["keys", "create", "--networks", "10.0.0.0/33"], 64, "neither an address nor a network"),
        (vec!["keys", "create", "--expires-in", "0s"], 64, "must work for some time"),
        (vec!["keys", "create", "--project", "UKXAGyEf8SQ5eTDmVgGpHqAa"], 1, "was not found"),
        (vec!["keys", "create", "--label", ""], 64, "1 to 256 characters"),
    ] {
        let output = fleet.control(&args)?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(code) && error.contains(said), "{args:?}: {output:?}");
    }
    Ok(())
}
