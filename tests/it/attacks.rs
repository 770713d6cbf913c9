//! Attacks on a real `waymark up`: malformed requests, invalid HTTP/2 frames, slow clients, weak TLS (`tests/attacks`).

use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::{
    product::{binary, root},
    python,
};

#[test]
fn malformed_and_smuggling_requests() {
    attack("http1", 200, "on").unwrap();
}

#[test]
fn malformed_and_smuggling_requests_that_hyper_reads() {
    attack("http1", 200, "off").unwrap();
}

#[test]
fn malformed_frames_and_floods_of_http2() {
    attack("http2", 120, "on").unwrap();
}

#[test]
fn slow_and_greedy_clients() {
    attack("slow", 11, "on").unwrap();
}

#[test]
fn weak_tls() {
    attack("tls", 15, "on").unwrap();
}

/// Runs one suite in its short form; it must have given as many verdicts at least, all of them as expected.
///
/// The figures of another client are not asserted here, only its failures: this machine may be busy.
fn attack(suite: &str, verdicts: u32, fast_redirects: &str) -> Result<()> {
    let folder = root().join("tests/attacks");
    let mut requirements = vec![folder.join("requirements.txt")];
    let environment = if suite == "tls" {
        requirements.push(folder.join("requirements-tls.txt"));
        "attacks-tls"
    } else {
        "attacks"
    };
    let output = Command::new(folder.join("run"))
        .arg("--python")
        .arg(python::installed(environment, &requirements)?.join("python"))
        .arg("--waymark")
        .arg(binary()?)
        .args(["--suites", suite, "--fast-redirects", fast_redirects])
        .output()
        .context("tests/attacks/run")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let (given, faults) = said.lines().last().and_then(totals).unwrap_or((0, u32::MAX));
    ensure!(
        output.status.success() && given >= verdicts && faults == 0,
        "{suite}: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Reads the closing line `N verdicts of waymark, M faults`.
fn totals(line: &str) -> Option<(u32, u32)> {
    let (given, faults) = line.split_once(" verdicts of waymark, ")?;
    Some((given.parse().ok()?, faults.strip_suffix(" faults")?.parse().ok()?))
}
