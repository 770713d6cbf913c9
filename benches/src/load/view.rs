//! A Redis of the run's own, with the view of all links.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpStream},
};

use anyhow::{Result, ensure};
use shared::wire::{
    stream::{Epoch, Rev},
    view::{Meta, Record, Setup, meta_key, record_key, setup_key},
};
use tests::redis::RedisServer;

use super::standin::domains;
use crate::links::Links;

/// Records of one command.
const CHUNK: usize = 1_000;

/// Starts an empty Redis, on the core of this process; it keeps nothing on disk.
pub(crate) fn start_redis() -> Result<RedisServer> {
    tokio::runtime::Runtime::new()?.block_on(RedisServer::start())
}

/// Writes the view, as of a revision.
pub(crate) fn publish(redis: &RedisServer, links: &Links, epoch: &Epoch, rev: Rev) -> Result<()> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, redis.port))?;
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
    let setup = Setup { domains: domains()?, rules: Vec::new(), withheld: Some(Vec::new()) };
    let meta = Meta { epoch: epoch.clone(), term: 1, watermark: rev, complete: true, shards: 1 };
    set(&[(setup_key(), serde_json::to_vec(&setup)?), (meta_key(0), meta.to_string().into_bytes())])
}
