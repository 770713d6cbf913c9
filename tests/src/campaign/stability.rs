//! Static stability: three edges under a steady load while Redis, every control and Postgres are killed.

use std::{
    fmt,
    path::Path,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering::SeqCst},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    load::short_id,
    steady::{self, Load, Sums},
    world::{Shape, World},
};

pub(super) const HOST: &str = "tn.gg";
pub(super) const EDGES: usize = 3;

/// Longest wait for something to happen on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(60);

/// How large it is.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Known ids.
    pub ids: u32,
    /// How long the capacity is measured.
    pub probe: Duration,
    /// How long the load goes on before the fault, and after it until the restart, and after that.
    pub part: Duration,
    /// Connections to each edge.
    pub connections: u32,
    /// Most requests a second over all edges, whatever the capacity is.
    pub at_most: f64,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    plan: Plan,
    /// Requests a second that the edges answered together, with the load generator beside them.
    pub capacity: f64,
    /// Requests a second that were asked for, over all edges.
    pub rate: f64,
    /// Before the fault, over all edges.
    pub before: Sums,
    /// From the fault to the end; of the edge that is restarted, until it is killed.
    pub after: Sums,
    /// Of the edge that was killed and started again while nothing else ran, from its first answer on.
    pub restarted: Sums,
    /// From the start of its process to its first answer.
    pub boot: Duration,
    /// What it said of its start.
    pub ready: Value,
}

impl Report {
    /// Whether nothing failed.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let all = [&self.before, &self.after, &self.restarted];
        all.iter().all(|sums| sums.failed == 0 && sums.right > 0) && self.ready["boot"] == "disk"
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, capacity, rate, .. } = self;
        writeln!(
            f,
            "static stability: {EDGES} edges, {} ids, capacity {capacity:.0}/s, load {rate:.0}/s",
            plan.ids
        )?;
        let parts = [
            ("before the fault, all edges", &self.before),
            ("Redis, controls and Postgres killed, all edges", &self.after),
            ("the third, killed and started again meanwhile", &self.restarted),
        ];
        for (name, sums) in parts {
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|part| sums.quantile_ms(part));
            writeln!(
                f,
                "  {name}: {} right, {} failed; p50 / p99 / max {p50:.1} / {p99:.1} / {max:.1} ms",
                sums.right, sums.failed
            )?;
            if let Some(first) = &sums.first {
                writeln!(f, "    first: {first}")?;
            }
        }
        let boot = self.boot.as_secs_f64() * 1e3;
        writeln!(f, "  restart to the first redirect {boot:.0} ms, boot {}", self.ready["boot"])?;
        write!(f, "  {}", if self.is_right() { "nothing failed" } else { "BROKEN" })
    }
}

/// Runs it; what the processes say goes to `logs`.
pub async fn run(plan: Plan, logs: &Path) -> Result<Report> {
    let mut world =
        World::start(Shape { controls: 2, edges: EDGES, has_clocks: false, has_small_disks: false }, logs)
            .await?;
    let links = Arc::new(create(&world, plan.ids).await?);
    let load = |world: &World, edge: usize, per_second| -> Result<Load> {
        let address = world.edges[edge].url.trim_start_matches("http://").parse()?;
        let seed = edge as u64;
        Ok(Load {
            address,
            host: HOST,
            links: links.clone(),
            connections: plan.connections,
            per_second,
            seed,
        })
    };
    fill(&world, &links).await?;

    let stop = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let mut probes = Vec::new();
    for edge in 0..EDGES {
        probes.push(tokio::spawn(steady::run(load(&world, edge, None)?, stop.clone())));
    }
    tokio::time::sleep(plan.probe).await;
    stop.store(true, SeqCst);
    let mut answered = 0;
    for probe in probes {
        let sums = probe.await??;
        ensure!(sums.failed == 0, "{} failed before any fault: {:?}", sums.failed, sums.first);
        answered += sums.right;
    }
    let capacity = answered as f64 / begun.elapsed().as_secs_f64();
    let rate = (capacity / 2.0).min(plan.at_most);

    let each = Some(rate / EDGES as f64);
    let start = |world: &World, edges: std::ops::Range<usize>, stop: &Arc<AtomicBool>| -> Result<Vec<_>> {
        edges.map(|edge| Ok(tokio::spawn(steady::run(load(world, edge, each)?, stop.clone())))).collect()
    };
    let stop = Arc::new(AtomicBool::new(false));
    let running = start(&world, 0..EDGES, &stop)?;
    tokio::time::sleep(plan.part).await;
    stop.store(true, SeqCst);
    let before = gather(running).await?;

    // The third edge's load ends before it is killed itself; all of it is under the fault.
    let (stop, stop_third) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let running = start(&world, 0..EDGES - 1, &stop)?;
    let third = start(&world, EDGES - 1..EDGES, &stop_third)?;
    world.redis.kill();
    world.controls.iter_mut().for_each(|control| control.process.kill());
    world.postgres.kill()?;
    tokio::time::sleep(plan.part).await;
    stop_third.store(true, SeqCst);
    let mut after = gather(third).await?;
    world.edges[EDGES - 1].process.kill();
    let begun = Instant::now();
    world.edges[EDGES - 1].process.start()?;
    until_served(&world, EDGES - 1, &links[0]).await?;
    let boot = begun.elapsed();
    let ready = world.edge_status(EDGES - 1).await?;
    let stop_third = Arc::new(AtomicBool::new(false));
    let third = start(&world, EDGES - 1..EDGES, &stop_third)?;
    tokio::time::sleep(plan.part).await;
    stop_third.store(true, SeqCst);
    stop.store(true, SeqCst);
    let restarted = gather(third).await?;
    after.add(gather(running).await?);
    Ok(Report { plan, capacity, rate, before, after, restarted, boot, ready })
}

pub(super) async fn gather(running: Vec<tokio::task::JoinHandle<Result<Sums>>>) -> Result<Sums> {
    let mut sums = Sums::default();
    for one in running {
        sums.add(one.await??);
    }
    Ok(sums)
}

/// Creates redirections; gives each short id with its target.
pub(super) async fn create(world: &World, count: u32) -> Result<Vec<(String, String)>> {
    let links: Vec<(String, String)> =
        (0..count).map(|n| (short_id(n), format!("https://example.com/{n}"))).collect();
    for chunk in links.chunks(500) {
        let items: Vec<Value> = chunk
            .iter()
            .map(|(id, target)| {
                json!({"platformId": world.product, "shortId": id, "defaultRedirectUrl": target})
            })
            .collect();
        let (status, body) = world.call(0, "POST", "/redirections", Some(Value::Array(items))).await?;
        let is_right = body.as_array().is_some_and(|all| all.iter().all(|one| one["status"] == 201));
        ensure!(status == 200 && is_right, "{status} {body}");
    }
    Ok(links)
}

/// Has every edge hold every id, in memory and on its disk.
pub(super) async fn fill(world: &World, links: &[(String, String)]) -> Result<()> {
    for edge in 0..EDGES {
        for link in links {
            until_served(world, edge, link).await?;
        }
    }
    let filled = SystemTime::now();
    for edge in 0..EDGES {
        let (begun, held) = (Instant::now(), world.edge_folder(edge).join("held"));
        while !std::fs::metadata(&held).is_ok_and(|file| file.modified().is_ok_and(|at| at > filled)) {
            ensure!(begun.elapsed() < DEADLINE, "edge {edge} does not write {}", held.display());
            // It writes when something changed: one more change makes it sure that there will be.
            let path = format!("/redirections/{}", links[0].0);
            let body = json!({"defaultRedirectUrl": links[0].1});
            let (status, said) = world.call(0, "PUT", &path, Some(body)).await?;
            ensure!(status == 200, "{status} {said}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    Ok(())
}

/// Asks until a link is served as it should be.
pub(super) async fn until_served(world: &World, edge: usize, (id, target): &(String, String)) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < DEADLINE {
        let request = world.http.get(format!("{}/{id}", world.edges[edge].url)).header("host", HOST);
        if let Ok(answer) = request.timeout(Duration::from_secs(2)).send().await
            && answer.status() == 307
        {
            let location = answer.headers().get("location").context("no Location")?;
            ensure!(location.as_bytes() == target.as_bytes(), "{id} leads to {location:?}");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bail!("edge {edge} does not serve {id}")
}
