//! `tests/campaign/run`: the fault campaign, static stability and the drain of scans, each as one command.

use std::{
    fmt::Display,
    fs,
    io::{Write, stderr, stdout},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use tests::campaign::{drain, run, stability};

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let (mut minutes, mut seed) = (3, SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs());
    let (mut part, mut is_stability, mut drain_at) = (10, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().context("a value is missing");
        match argument.as_str() {
            "--minutes" => minutes = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            "--stability" => is_stability = true,
            "--drain" => drain_at = Some(value()?.parse::<f64>()?),
            "--seconds" => part = value()?.parse()?,
            other => {
                let known = "--minutes, --seed, --stability, --drain and --seconds";
                anyhow::bail!("{other}: only {known} are known")
            }
        }
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let logs = std::env::temp_dir().join(format!("waymark-campaign-{}", std::process::id()));
    fs::create_dir_all(&logs)?;
    let done = if let Some(per_second) = drain_at {
        let (outage, deadline) = (Duration::from_secs(part), Duration::from_secs(600));
        let report = drain::run(drain::Plan { per_second, outage, deadline }, &logs).await;
        report.and_then(|report| print(&report, report.is_right()))
    } else if is_stability {
        let (probe, part) = (Duration::from_secs(3), Duration::from_secs(part));
        let plan = stability::Plan { ids: 2_000, probe, part, connections: 16, at_most: f64::INFINITY };
        stability::run(plan, &logs).await.and_then(|report| print(&report, report.is_right()))
    } else {
        let report = run::run(Duration::from_secs(minutes * 60), seed, &logs, &say).await;
        report.and_then(|report| print(&report, report.is_right()))
    };
    if matches!(done, Ok(true)) {
        fs::remove_dir_all(&logs)?;
    } else {
        say(&format!("what the processes said: {}", logs.display()));
    }
    Ok(if done? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(report: &dyn Display, is_right: bool) -> Result<bool> {
    writeln!(stdout(), "{report}")?;
    Ok(is_right)
}

/// Tells what goes on.
fn say(text: &str) {
    // A closed stderr must not end a campaign.
    let _ = writeln!(stderr(), "{text}");
}
