//! `/metrics` as `promtool check metrics` judges it: names, units, help.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

/// What every process shows of itself.
const PROCESS: [&str; 6] = [
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
];

/// Reads `/metrics` of an admin listener in both forms; the older one must pass the linter.
///
/// # Errors
/// It does not, or something is missing.
pub async fn check(http: &reqwest::Client, admin: &str) -> Result<()> {
    let url = format!("{admin}/metrics");
    let open = http.get(&url).header("accept", "application/openmetrics-text").send().await?;
    let kind = open.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    ensure!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let open = open.text().await?;
    ensure!(open.ends_with("# EOF\n") && open.matches("# EOF").count() == 1, "one end");
    let answer = http.get(&url).send().await?;
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    ensure!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = answer.text().await?;
    for name in PROCESS {
        let shown = text.lines().filter(|line| line.split(' ').next() == Some(name)).count();
        ensure!(shown == 1, "{name} is shown {shown} times");
    }
    let mut linter = Command::new("promtool");
    linter.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut linter = linter.spawn().context("promtool: install it by deploy/setup test")?;
    linter.stdin.take().context("stdin")?.write_all(text.as_bytes())?;
    let output = linter.wait_with_output()?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&said));
    Ok(())
}
