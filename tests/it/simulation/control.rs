//! Control and Redis as hosts of the simulated network: real frames, the state of [`Truth`].

use std::time::Duration;

use anyhow::{Result, bail};
use bytes::BytesMut;
use shared::{
    redirect::RedirectKey,
    wire::{
        frame::{self, Decoder},
        internal::STREAM_UPGRADE,
        stream::{Events, Fill, HEARTBEAT_MS, Rev, ToControl, ToEdge},
    },
};
use tests::campaign::{
    history::{DELETED, Outcome},
    load::random,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    time::{interval, sleep},
};
use turmoil::net::{TcpListener, TcpStream, tcp::OwnedReadHalf};

use super::truth::{HOST, State, Truth, change, poison};

/// Port of the stream.
pub(super) const STREAM: u16 = 9000;

/// Port of single keys, at control and at Redis.
pub(super) const KEYS: u16 = 9001;

/// Keys that one writer has at a time.
const KEYS_PER_WRITER: usize = 8;

/// How long a writer waits for the edges.
const WAIT: Duration = Duration::from_secs(3);

/// Time since the begin, the same on every host.
pub(super) fn now() -> Duration {
    turmoil::sim_elapsed().unwrap()
}

/// A replica of control: streams and single keys.
pub(super) async fn control(truth: Truth) -> turmoil::Result {
    let streams = TcpListener::bind(("0.0.0.0", STREAM)).await?;
    tokio::spawn(answer(truth.clone(), State::look_up));
    loop {
        let (io, _) = streams.accept().await?;
        let truth = truth.clone();
        // It ends with its connection, or at a fault; the edge comes again.
        tokio::spawn(async move { drop(follow(io, truth).await) });
    }
}

/// Redis with the publisher that fills it.
pub(super) async fn redis(truth: Truth, mut seed: u64) -> turmoil::Result {
    tokio::spawn(answer(truth.clone(), State::view_of));
    loop {
        sleep(Duration::from_millis(1 + random(&mut seed) % 20)).await;
        truth.state().publish(now());
    }
}

/// Answers single keys, one for each connection.
async fn answer(truth: Truth, find: fn(&State, &RedirectKey) -> Fill) -> Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", KEYS)).await?;
    loop {
        let (io, _) = listener.accept().await?;
        let truth = truth.clone();
        tokio::spawn(async move {
            let (read, mut write) = io.into_split();
            let mut line = String::new();
            BufReader::new(read).read_line(&mut line).await?;
            let fill = find(&truth.state(), &RedirectKey::new(HOST, line.trim()));
            let mut bytes = serde_json::to_vec(&fill)?;
            bytes.push(b'\n');
            write.write_all(&bytes).await?;
            write.shutdown().await?;
            Result::<()>::Ok(())
        });
    }
}

/// One stream, as control's streamer has it.
async fn follow(mut io: TcpStream, truth: Truth) -> Result<()> {
    let mut head = BytesMut::new();
    while !head.ends_with(b"\r\n\r\n") {
        if io.read_buf(&mut head).await? == 0 {
            bail!("no request");
        }
    }
    let upgrade = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: {STREAM_UPGRADE}\r\n\r\n"
    );
    io.write_all(upgrade.as_bytes()).await?;
    let (mut read, mut write) = io.into_split();
    let mut decoder = Decoder::<ToControl>::default();
    let ToControl::Hello(hello) = next(&mut read, &mut decoder).await? else { bail!("no hello") };
    let Some(edge) = hello.edge_id.strip_prefix("edge-").and_then(|number| number.parse().ok()) else {
        bail!("{} is no edge", hello.edge_id);
    };
    let (welcome, mut cursor) = truth.state().welcome(hello.epoch.as_ref(), hello.applied);
    let epoch = welcome.epoch.clone();
    write.write_all(&frame::encode(&ToEdge::Welcome(welcome))?).await?;
    let (mut beat, mut look) =
        (interval(Duration::from_millis(HEARTBEAT_MS)), interval(Duration::from_millis(2)));
    let (mut seq, mut acked) = (0, 0);
    loop {
        let is_beat = tokio::select! {
            message = next(&mut read, &mut decoder) => {
                match message? {
                    ToControl::Ack { applied, rejected } => {
                        let mut state = truth.state();
                        if applied < acked {
                            state.broken_rules.push(format!("edge {edge} went back from {acked} to {applied}"));
                        }
                        if applied > cursor {
                            state.broken_rules.push(format!("edge {edge} has {applied}, sent was {cursor}"));
                        }
                        acked = applied;
                        state.acked(edge, &epoch, applied, &rejected, now());
                    }
                    ToControl::Resync { applied, .. } => {
                        let (welcome, start) = truth.state().welcome(Some(&epoch), applied);
                        if welcome.epoch != epoch {
                            return Ok(());
                        }
                        cursor = start;
                        write.write_all(&frame::encode(&ToEdge::Welcome(welcome))?).await?;
                    }
                    ToControl::Hello(_) => bail!("a second hello"),
                }
                continue;
            }
            _ = look.tick() => false,
            _ = beat.tick() => true,
        };
        let Some((events, head)) = news(&truth, &epoch, cursor) else { return Ok(()) };
        if let Some(events) = events {
            cursor = events.last;
            write.write_all(&frame::encode(&ToEdge::Events(events.into()))?).await?;
        }
        if is_beat {
            seq += 1;
            write.write_all(&frame::encode(&ToEdge::Heartbeat { seq, head })?).await?;
        }
    }
}

/// What came after a revision, and the head; nothing in another epoch.
fn news(truth: &Truth, epoch: &str, cursor: Rev) -> Option<(Option<Events>, Rev)> {
    let state = truth.state();
    if *state.epoch != *epoch {
        return None;
    }
    let head = state.head();
    let items = state.log().get(usize::try_from(cursor).ok()?..).unwrap_or_default().to_vec();
    Some(((!items.is_empty()).then_some(Events { prev: cursor, items, last: head }), head))
}

async fn next(read: &mut OwnedReadHalf, decoder: &mut Decoder<ToControl>) -> Result<ToControl> {
    loop {
        if let Some(message) = decoder.decode()? {
            return Ok(message);
        }
        if read.read_buf(&mut decoder.buffer).await? == 0 {
            bail!("the stream ended");
        }
    }
}

/// Creates, changes and deletes until it is told to end.
pub(super) async fn write(truth: Truth, mut seed: u64) -> turmoil::Result {
    let mut live: Vec<(u32, u64)> = Vec::new();
    while !truth.state().is_ending {
        sleep(Duration::from_millis(1 + random(&mut seed) % 15)).await;
        if random(&mut seed).is_multiple_of(40) {
            let (rev, epoch) = commit(&truth, poison());
            wait(&truth, &epoch, rev).await;
            continue;
        }
        let (key, version) = if live.len() < KEYS_PER_WRITER {
            (truth.state().new_key(), 1)
        } else {
            let (key, version) = live.swap_remove((random(&mut seed) % live.len() as u64) as usize);
            (key, if random(&mut seed).is_multiple_of(25) { DELETED } else { version + 1 })
        };
        let start = truth.moment();
        let (rev, epoch) = commit(&truth, change(key, version));
        let outcome = wait(&truth, &epoch, rev).await;
        truth.wrote(key, version, start, outcome);
        if version != DELETED {
            live.push((key, version));
        }
    }
    truth.state().ended += 1;
    Ok(())
}

fn commit(truth: &Truth, change: shared::wire::stream::Change) -> (Rev, String) {
    let mut state = truth.state();
    (state.commit(change), state.epoch.to_string())
}

/// The answer of `wait=edges`.
async fn wait(truth: &Truth, epoch: &str, rev: Rev) -> Outcome {
    let begun = now();
    while now() < begun + WAIT {
        if let Some(outcome) = truth.state().waited(epoch, rev, now()) {
            return outcome;
        }
        sleep(Duration::from_millis(1)).await;
    }
    Outcome::Stored
}
