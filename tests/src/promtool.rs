//! Checks `/metrics` with `promtool check metrics`: names, units, help.

use std::{
    collections::BTreeSet,
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

/// The metrics of Waymark that a dashboard or a file of alerts names: `waymark_(edge|control)_x` names two.
#[must_use]
pub fn shown_metrics(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices("waymark_") {
        let rest = &text[at + "waymark_".len()..];
        let (sides, rest) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((sides, rest)) => (sides.split('|').collect(), rest),
            None => (vec![""], rest),
        };
        let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        names.extend(sides.into_iter().map(|side| format!("waymark_{side}{}", &rest[..end])));
    }
    names.retain(|name| name.starts_with("waymark_edge_") || name.starts_with("waymark_control_"));
    names
}

/// Reads `/metrics` of an admin listener in both forms; the older one must pass the linter.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_sides_names_a_metric_of_each() {
        let text =
            r#"rate({__name__=~"waymark_(edge|control)_a_total"}[5m]) > waymark_edge_b{job="waymark-edge"}"#;
        let expected = ["waymark_control_a_total", "waymark_edge_a_total", "waymark_edge_b"];
        assert_eq!(shown_metrics(text), expected.map(str::to_owned).into());
    }
}
