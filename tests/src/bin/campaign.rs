//! `tests/campaign/run`: the fault campaign and static stability, each as one command.

use std::{
    fmt::Display,
    fs,
    io::{Write, stderr, stdout},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use tests::campaign::{run, stability};

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let (mut minutes, mut seed) = (3, SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs());
    let (mut part, mut is_stability) = (10, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().context("a value is missing");
        match argument.as_str() {
            "--minutes" => minutes = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            "--stability" => is_stability = true,
            "--seconds" => part = value()?.parse()?,
            other => {
                anyhow::bail!("{other}: only --minutes, --seed, --stability and --seconds are known")
            }
        }
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let logs = std::env::temp_dir().join(format!("waymark-campaign-{}", std::process::id()));
    fs::create_dir_all(&logs)?;
    let done = if is_stability {
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
