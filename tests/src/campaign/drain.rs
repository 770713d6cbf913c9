//! How fast control takes in a backlog of scans, while new ones keep arriving.

use std::{
    fmt,
    path::Path,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering::SeqCst},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::{
    stability::{EDGES, HOST, create, fill, gather},
    steady::{self, Load, Sums},
    world::{Shape, World},
};

/// How large it is.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Scans a second over all edges.
    pub per_second: f64,
    /// How long every control is away.
    pub outage: Duration,
    /// Longest wait for the backlog to be gone.
    pub deadline: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    plan: Plan,
    /// Scans that waited when control was back.
    pub backlog: u64,
    /// Scans that were taken in until nothing waited longer than usual.
    pub taken: u64,
    /// How long that took.
    pub took: Duration,
    /// The load, from before the outage to the end.
    pub load: Sums,
    /// Scans that an edge dropped.
    pub lost: u64,
}

impl Report {
    /// Scans taken in for each that arrived meanwhile.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.taken as f64 / self.took.as_secs_f64() / self.plan.per_second
    }

    /// Whether no redirect failed and no scan was dropped.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.load.failed == 0 && self.lost == 0 && self.backlog > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { per_second, outage, .. } = self.plan;
        writeln!(f, "drain: {EDGES} edges, {per_second:.0} scans/s, every control away for {outage:?}")?;
        let took = self.took.as_secs_f64();
        writeln!(
            f,
            "  backlog {}, taken in {} in {took:.1} s: {:.0}/s, {:.1} times the arrival",
            self.backlog,
            self.taken,
            self.taken as f64 / took,
            self.ratio()
        )?;
        write!(f, "  redirects {}, failed {}; scans dropped {}", self.load.right, self.load.failed, self.lost)
    }
}

/// Runs it; what the processes say goes to `logs`.
pub async fn run(plan: Plan, logs: &Path) -> Result<Report> {
    let mut world =
        World::start(Shape { controls: 2, edges: EDGES, has_clocks: false, has_small_disks: false }, logs)
            .await?;
    let links = Arc::new(create(&world, 500).await?);
    fill(&world, &links).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut running = Vec::new();
    for edge in 0..EDGES {
        let address = world.edges[edge].url.trim_start_matches("http://").parse()?;
        let per_second = Some(plan.per_second / EDGES as f64);
        let load =
            Load { address, host: HOST, links: links.clone(), connections: 8, per_second, seed: edge as u64 };
        running.push(tokio::spawn(steady::run(load, stop.clone())));
    }
    world.controls.iter_mut().for_each(|control| control.process.kill());
    tokio::time::sleep(plan.outage).await;
    for control in &mut world.controls {
        control.process.start()?;
    }
    let before = counts(&world).await?;
    let (mut begun, mut last) = (Instant::now(), before);
    let waited = Instant::now();
    // What arrives in half a second waits at any time.
    let usual = (plan.per_second / 2.0) as u64;
    while last.waiting() > usual {
        ensure!(waited.elapsed() < plan.deadline, "{} scans still wait", last.waiting());
        tokio::time::sleep(Duration::from_millis(50)).await;
        last = counts(&world).await?;
        if last.shipped == before.shipped {
            // Control is not up yet: its start is no part of the rate.
            begun = Instant::now();
        }
    }
    let took = begun.elapsed();
    stop.store(true, SeqCst);
    let load = gather(running).await?;
    let (backlog, taken) = (before.waiting(), last.shipped - before.shipped);
    Ok(Report { plan, backlog, taken, took, load, lost: last.lost })
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    recorded: u64,
    shipped: u64,
    lost: u64,
}

impl Counts {
    const fn waiting(&self) -> u64 {
        self.recorded.saturating_sub(self.shipped)
    }
}

/// The edges' own counts, together.
async fn counts(world: &World) -> Result<Counts> {
    let mut sums = Counts::default();
    for edge in 0..EDGES {
        let status = world.edge_status(edge).await?;
        let count = |name: &str| status["scans"][name].as_u64().with_context(|| format!("{name}: {status}"));
        sums.recorded += count("recorded")?;
        sums.shipped += count("shipped")?;
        sums.lost += count("lost")?;
    }
    Ok(sums)
}
