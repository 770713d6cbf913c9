//! `waymark status`: what the service is doing now.

use std::{
    io,
    process::ExitCode,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::client::{ApiArgs, Client};
use crate::failure::Failure;

/// Arguments of `waymark status`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    api: ApiArgs,
    /// Seconds over which rates are measured; 0 measures none
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// `GET /status` as far as it is shown.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    epoch: String,
    revision: u64,
    edges: Vec<EdgeStatus>,
    #[serde(default)]
    scans: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EdgeStatus {
    edge_id: String,
    region: String,
    build: String,
    reachable: bool,
    applied: u64,
    lag: u64,
    silent_ms: u64,
    #[serde(default)]
    rejected: Vec<u64>,
}

/// Changes a second, measured between two looks.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rates {
    seconds: f64,
    revisions_per_second: f64,
    scans_per_second: f64,
}

/// Runs the command.
///
/// # Errors
/// The API did not answer.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?.brief();
    let url = client.url(&["status"], []);
    let failed = |error| Failure::unfinished("the status", error);
    let begun = Instant::now();
    let first: Status = client.read(&url).await.map_err(failed)?;
    let (status, rates) = if args.interval > 0.0 {
        // An hour is the longest that makes sense; NaN and infinities end here too.
        tokio::time::sleep(Duration::try_from_secs_f64(args.interval.min(3_600.0)).unwrap_or_default()).await;
        let second: Status = client.read(&url).await.map_err(failed)?;
        let seconds = begun.elapsed().as_secs_f64();
        let rates = Rates {
            seconds,
            revisions_per_second: second.revision.saturating_sub(first.revision) as f64 / seconds,
            scans_per_second: scans(&second).saturating_sub(scans(&first)) as f64 / seconds,
        };
        (second, Some(rates))
    } else {
        (first, None)
    };
    let mut out = io::stdout().lock();
    let written = if args.json {
        write_json(&mut out, &status, rates.as_ref())
    } else {
        write_text(&mut out, &status, rates.as_ref())
    };
    // A closed pipe is no fault.
    let _ = written;
    let healthy = status.edges.iter().all(|edge| edge.reachable && edge.rejected.is_empty());
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn scans(status: &Status) -> u64 {
    status.scans.get("recorded").and_then(serde_json::Value::as_u64).unwrap_or_default()
}

fn write_json(out: &mut impl io::Write, status: &Status, rates: Option<&Rates>) -> io::Result<()> {
    #[derive(Serialize)]
    struct Both<'a> {
        #[serde(flatten)]
        status: &'a Status,
        #[serde(skip_serializing_if = "Option::is_none")]
        rates: Option<&'a Rates>,
    }
    serde_json::to_writer(&mut *out, &Both { status, rates })?;
    writeln!(out)
}

fn write_text(out: &mut impl io::Write, status: &Status, rates: Option<&Rates>) -> io::Result<()> {
    writeln!(out, "revision  {} (epoch {})", status.revision, status.epoch)?;
    for (name, value) in &status.scans {
        writeln!(out, "scans     {value} {name}")?;
    }
    if let Some(rates) = rates {
        writeln!(
            out,
            "rates     {:.1} revisions/s, {:.1} scans/s over {:.1} s",
            rates.revisions_per_second, rates.scans_per_second, rates.seconds
        )?;
    }
    for edge in &status.edges {
        let state = if edge.reachable { "reachable" } else { "UNREACHABLE" };
        writeln!(
            out,
            "edge      {} ({}, {}): {state}, applied {}, lag {}, heard of {} ms ago{}",
            edge.edge_id,
            edge.region,
            edge.build,
            edge.applied,
            edge.lag,
            edge.silent_ms,
            if edge.rejected.is_empty() { String::new() } else { format!(", REFUSED {:?}", edge.rejected) }
        )?;
    }
    out.flush()
}
