//! The faults, one at a time: each is started, held for a while, and healed.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{
    history::Boot,
    load::{Shared, random},
    proxy::Mode,
    world::{Process, World},
};
use crate::redis::{RedisServer, signal};

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A control is killed and started again.
    KillControl,
    /// An edge is killed and started again.
    KillEdge,
    /// Redis is killed and comes back empty.
    KillRedis,
    /// Postgres is killed and started again.
    KillPostgres,
    /// A control is stopped for a while, and goes on.
    PauseControl,
    /// An edge is stopped for a while, and goes on.
    PauseEdge,
    /// Redis is stopped for a while, and goes on.
    PauseRedis,
    /// Everything in Redis is thrown away.
    FlushRedis,
    /// A replica of Redis that is behind becomes the primary.
    PromoteOldReplica,
    /// The link of one edge swallows everything for a while.
    BlackholeEdge,
    /// The link of one edge resets every connection for a while.
    ResetEdge,
    /// The database is lost and restored from a dump: nothing is missing, and the history is another one.
    RestoreDatabase,
    /// The disk of an edge is full for a while: what it records cannot be written.
    FillDisk,
    /// The wall clock of a control jumps, and back again.
    JumpClockOfControl,
    /// The wall clock of an edge jumps, and back again.
    JumpClockOfEdge,
}

/// Every kind.
pub const ALL: [Fault; 15] = [
    Fault::KillControl,
    Fault::KillEdge,
    Fault::KillRedis,
    Fault::KillPostgres,
    Fault::PauseControl,
    Fault::PauseEdge,
    Fault::PauseRedis,
    Fault::FlushRedis,
    Fault::PromoteOldReplica,
    Fault::BlackholeEdge,
    Fault::ResetEdge,
    Fault::RestoreDatabase,
    Fault::FillDisk,
    Fault::JumpClockOfControl,
    Fault::JumpClockOfEdge,
];

/// Longest jump of a clock, in seconds: past the day that answers and the log are kept.
const JUMP: u64 = 100_000;

/// How long a disk is full at least: some scans still fit into the last page of a file that is open.
const FULL: Duration = Duration::from_secs(2);

/// Makes a fault happen and pass; returns when every part runs again, though not all may have recovered.
pub async fn inject(fault: Fault, world: &mut World, shared: &Shared, seed: &mut u64) -> Result<()> {
    let control = (random(seed) % world.controls.len() as u64) as usize;
    let edge = (random(seed) % world.edges.len() as u64) as usize;
    // Shorter and longer than the leases of the publisher (3 s) and of members (10 s).
    let hold = Duration::from_millis(200 + random(seed) % 14_000);
    let short = Duration::from_millis(100 + random(seed) % 2_000);
    match fault {
        Fault::KillControl => {
            world.controls[control].process.kill();
            tokio::time::sleep(short).await;
            world.controls[control].process.start()?;
            world.until_ok(&format!("{}/ready", world.controls[control].admin)).await?;
        }
        Fault::KillEdge => {
            let start = shared.now();
            // Open until it follows again: what it serves from disk before is not held against it.
            let number = u16::try_from(edge)?;
            shared.history().boots.push(Boot { edge: number, start, end: u64::MAX });
            world.edges[edge].process.kill();
            tokio::time::sleep(short).await;
            world.edges[edge].process.start()?;
            world.until_live(edge).await?;
            let end = shared.now();
            if let Some(boot) = shared.history().boots.last_mut() {
                boot.end = end;
            }
        }
        Fault::KillRedis => {
            world.redis.kill();
            tokio::time::sleep(short).await;
            world.redis.start_again().await?;
        }
        Fault::KillPostgres => {
            world.postgres.kill()?;
            tokio::time::sleep(short).await;
            world.postgres.start_again()?;
        }
        Fault::PauseControl => pause(world.controls[control].process.pid(), hold).await?,
        Fault::PauseEdge => pause(world.edges[edge].process.pid(), hold).await?,
        Fault::PauseRedis => pause(Some(world.redis.pid()), hold).await?,
        Fault::FlushRedis => world.redis.command::<()>(&["FLUSHALL"]).await?,
        Fault::PromoteOldReplica => {
            let port = world.redis.port.to_string();
            let mut replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]).await?;
            wait_for_copy(&replica).await?;
            replica.promote().await?;
            // The old one takes a while longer what the replica will never have.
            tokio::time::sleep(short).await;
            world.redis.kill();
            world.promote(replica);
        }
        Fault::BlackholeEdge => cut(world, edge, Mode::Blackhole, hold).await,
        Fault::ResetEdge => cut(world, edge, Mode::Reset, hold).await,
        Fault::RestoreDatabase => {
            // What is dumped is all there is: nobody writes behind the dump.
            world.controls.iter_mut().for_each(|control| control.process.kill());
            world.postgres.restore()?;
            for control in &mut world.controls {
                control.process.start()?;
            }
            for control in &world.controls {
                world.until_ok(&format!("{}/ready", control.admin)).await?;
            }
        }
        Fault::FillDisk => {
            let before = degraded(world, edge).await?;
            world.fill_disk(edge, FULL + hold).await?;
            shared.add_degraded(degraded(world, edge).await? - before);
        }
        Fault::JumpClockOfControl => jump(&world.controls[control].process, hold, seed).await?,
        Fault::JumpClockOfEdge => jump(&world.edges[edge].process, hold, seed).await?,
    }
    Ok(())
}

/// Scans that an edge has counted by link and minute since it was started.
async fn degraded(world: &World, edge: usize) -> Result<u64> {
    let status = world.edge_status(edge).await?;
    status["scans"]["degraded"].as_u64().with_context(|| status.to_string())
}

async fn pause(pid: Option<u32>, hold: Duration) -> Result<()> {
    if let Some(pid) = pid {
        signal(pid, "STOP")?;
        tokio::time::sleep(hold).await;
        signal(pid, "CONT")?;
    }
    Ok(())
}

async fn jump(process: &Process, hold: Duration, seed: &mut u64) -> Result<()> {
    let seconds = i64::try_from(random(seed) % (2 * JUMP))? - i64::try_from(JUMP)?;
    process.set_clock(seconds)?;
    tokio::time::sleep(hold).await;
    process.set_clock(0)
}

async fn cut(world: &World, edge: usize, mode: Mode, hold: Duration) {
    let links = &world.edges[edge].links;
    links.iter().for_each(|link| link.set(mode));
    tokio::time::sleep(hold).await;
    links.iter().for_each(|link| link.set(Mode::Pass));
}

async fn wait_for_copy(replica: &RedisServer) -> Result<()> {
    for _ in 0..500 {
        let info: String = replica.command(&["INFO", "replication"]).await?;
        if info.contains("master_link_status:up") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("the replica does not copy")
}
