//! Plain WebSockets on the paths of the API, driven by Node's own client.

use std::{process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use tests::{db::Engine, product::root};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::Broker;

/// Runs a script with the broker's addresses and keys.
async fn run(broker: &Broker, thng: &str, thng_key: &str) -> Result<()> {
    let mut command = Command::new("node");
    command
        .arg("socket.mjs")
        .current_dir(root().join("tests/clients"))
        .env("WAYMARK_WS_URL", broker.api.replacen("http", "ws", 1))
        .env("WAYMARK_API_URL", &broker.api)
        .env("WAYMARK_OPERATOR_KEY", &broker.key)
        .env("WAYMARK_OTHER_KEY", &broker.other_key)
        .env("WAYMARK_THNG", thng)
        .env("WAYMARK_THNG_KEY", thng_key);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success() && said.trim_end().ends_with("done"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

async fn resource_paths_accept_websockets(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let thng = broker.thng().await?;
    let key = broker.key_of(&thng).await?;
    run(&broker, &thng, &key).await?;
    broker.until_connected(&thng, &[true, false]).await
}

/// Some clients take a ping that they did not expect for a fault.
async fn nothing_is_sent_in_the_first_second(engine: Engine) -> Result<()> {
    let broker = Broker::new(engine).await?;
    let address = broker.api.strip_prefix("http://").context("http")?;
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!(
        "GET /actions/scans?access_token={} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        broker.key
    );
    stream.write_all(request.as_bytes()).await?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    ensure!(line.starts_with("HTTP/1.1 101"), "{line}");
    while line != "\r\n" {
        line.clear();
        ensure!(reader.read_line(&mut line).await? > 0, "the connection ended");
    }
    let mut frame = [0; 64];
    let read = tokio::time::timeout(Duration::from_secs(1), reader.read(&mut frame)).await;
    ensure!(read.is_err(), "{read:?}: {frame:?}");
    Ok(())
}

crate::on_both_engines!(resource_paths_accept_websockets, nothing_is_sent_in_the_first_second);
