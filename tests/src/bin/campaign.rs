//! `tests/campaign/run`: the fault campaign as one command.

use std::{
    io::{Write, stdout},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let (mut minutes, mut seed) = (3, SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().context("a value is missing");
        match argument.as_str() {
            "--minutes" => minutes = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            other => anyhow::bail!("{other}: only --minutes and --seed are known"),
        }
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let report = tests::campaign::run::run(Duration::from_secs(minutes * 60), seed).await?;
    writeln!(stdout(), "{report}")?;
    Ok(if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
