//! `pyotp` as the authenticator app.

use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tests::{killed::Killed, product::root, python};

/// An app that has scanned the code of an enrolment.
pub(super) struct Authenticator {
    _child: Killed,
    ask: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Authenticator {
    pub(super) fn install() -> Result<Self> {
        let python = python::programs("pyotp")?.join("python");
        let mut child = Command::new(python)
            .arg(root().join("tests/clients/pyotp/authenticator.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (ask, told) = (child.stdin.take().context("stdin")?, child.stdout.take().context("stdout")?);
        Ok(Self { _child: Killed(child), ask, told: BufReader::new(told) })
    }

    /// The code of a time, by the URL of the enrolment.
    pub(super) fn code(&mut self, url: &str, at_ms: i64) -> Result<String> {
        writeln!(self.ask, "{} {url}", at_ms / 1_000)?;
        self.ask.flush()?;
        let mut line = String::new();
        self.told.read_line(&mut line)?;
        let mut parts = line.trim_end().split('\t');
        let code = parts.next().context("code")?.to_owned();
        ensure!(code.len() == 6 && parts.eq(["o@example.com (Test)", "Waymark"]), "{line:?}");
        Ok(code)
    }
}
