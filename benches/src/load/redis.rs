//! A Redis of the run's own, with the view of all links.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use shared::wire::{
    stream::{Epoch, Rev},
    view::{Meta, Record, Setup, meta_key, record_key, setup_key},
};

use super::standin::domains;
use crate::{
    links::Links,
    process::{self, Server},
    waymark::free_addresses,
};

/// Records of one command.
const CHUNK: usize = 1_000;
/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A Redis; killed when dropped.
#[derive(Debug)]
pub(crate) struct Redis {
    address: SocketAddr,
    server: Server,
}

impl Redis {
    /// Starts an empty one that keeps nothing on disk.
    pub(crate) fn start(folder: &Path, core: Option<usize>) -> Result<Self> {
        let [address] = free_addresses()?;
        let mut command = process::command(Path::new("redis-server"), core);
        command
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--logfile", "redis.log", "--dir"])
            .arg(folder);
        let mut server = Server::spawn(&mut command)?;
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            server.check_alive().context("redis-server")?;
            ensure!(begun.elapsed() < PATIENCE, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { address, server })
    }

    /// As an edge is told of it.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// What it holds in memory, in bytes.
    pub(crate) fn rss(&self) -> Result<u64> {
        Ok(process::memory(self.server.pid)?.rss)
    }

    /// Writes the view, as of a revision.
    pub(crate) fn publish(&self, links: &Links, epoch: &Epoch, rev: Rev) -> Result<()> {
        let stream = TcpStream::connect(self.address)?;
        let (mut replies, mut stream) = (BufReader::new(stream.try_clone()?), stream);
        let mut set = |pairs: &[(String, Vec<u8>)]| -> Result<()> {
            let mut command = format!("*{}\r\n$4\r\nMSET\r\n", 1 + 2 * pairs.len()).into_bytes();
            for (key, value) in pairs {
                write!(command, "${}\r\n{key}\r\n${}\r\n", key.len(), value.len())?;
                command.extend_from_slice(value);
                command.extend_from_slice(b"\r\n");
            }
            stream.write_all(&command)?;
            let mut reply = String::new();
            replies.read_line(&mut reply)?;
            ensure!(reply == "+OK\r\n", "MSET: {reply:?}");
            Ok(())
        };
        for start in (0..links.count()).step_by(CHUNK) {
            let pairs = (start..links.count().min(start + CHUNK))
                .map(|index| {
                    let value = links.record(index, None)?.into();
                    Ok((record_key(0, &links.key(index)), serde_json::to_vec(&Record { rev, value })?))
                })
                .collect::<Result<Vec<_>>>()?;
            set(&pairs)?;
        }
        let setup = Setup { domains: domains()?, rules: Vec::new() };
        let meta = Meta { epoch: epoch.clone(), term: 1, watermark: rev, complete: true, shards: 1 };
        set(&[(setup_key(), serde_json::to_vec(&setup)?), (meta_key(0), meta.to_string().into_bytes())])
    }
}
