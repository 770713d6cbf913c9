//! aiosmtpd as the server of mail.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{
    killed::Killed,
    product::{DEADLINE, root},
    python,
};

/// What the user of the server is called in a URL.
pub(super) const LOGIN: &str = "waymark:a%20p%40ssword%2Fof%20mail";

/// How connections to it are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    StartTls,
    Tls,
}

/// The program, installed, and a certificate for 127.0.0.1.
pub(crate) struct Program {
    python: PathBuf,
    dir: tempfile::TempDir,
}

impl Program {
    pub(crate) fn install() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let python = python::programs("aiosmtpd")?.join("python");
        let key = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        std::fs::write(dir.path().join("cert.pem"), key.cert.pem())?;
        std::fs::write(dir.path().join("key.pem"), key.signing_key.serialize_pem())?;
        Ok(Self { python, dir })
    }

    /// The certificate.
    pub(super) fn certificate(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    pub(super) fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a server; with port 0 on a free one.
    pub(crate) fn start(&self, mode: Mode, port: u16) -> Result<Server> {
        let word = match mode {
            Mode::Plain => "none",
            Mode::StartTls => "starttls",
            Mode::Tls => "tls",
        };
        let mut child = Command::new(&self.python)
            .arg(root().join("tests/clients/aiosmtpd/server.py"))
            .args([&port.to_string(), word])
            .args([self.certificate(), self.dir.path().join("key.pem")])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("stdout")?).lines();
        let (said, port) = mpsc::channel();
        let mails = Arc::new(Mutex::new(Vec::new()));
        let taken = mails.clone();
        std::thread::spawn(move || {
            let _ = said.send(lines.next());
            for line in lines.map_while(Result::ok) {
                taken.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let port = port.recv_timeout(DEADLINE)?.context("no port")??.parse()?;
        Ok(Server { mode, port, mails, _child: Killed(child) })
    }
}

/// A server that runs; killed when dropped.
pub(crate) struct Server {
    mode: Mode,
    pub(super) port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
    _child: Killed,
}

impl Server {
    /// Its URL, with the user.
    pub(crate) fn url(&self) -> String {
        match self.mode {
            Mode::Plain => format!("smtp://{LOGIN}@127.0.0.1:{}?tls=off", self.port),
            Mode::StartTls => format!("smtp://{LOGIN}@127.0.0.1:{}", self.port),
            Mode::Tls => format!("smtps://{LOGIN}@127.0.0.1:{}", self.port),
        }
    }

    /// Every mail that it took.
    pub(crate) fn mails(&self) -> Vec<Value> {
        self.mails.lock().unwrap().clone()
    }

    /// The mail of a number, counted from 0, as soon as it is there.
    pub(crate) async fn mail(&self, number: usize) -> Result<Value> {
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            if let Some(mail) = self.mails().get(number) {
                let is_protected = mail["tls"] == (self.mode != Mode::Plain);
                ensure!(is_protected && mail["auto"] == "auto-generated", "{mail}");
                return Ok(mail.clone());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::bail!("no mail {number}: {:?}", self.mails())
    }
}

/// The code in a mail: a line of its own.
pub(crate) fn code_of(mail: &Value) -> Result<String> {
    let text = mail["text"].as_str().context("text")?;
    let is_code = |line: &&str| line.len() == 80 && line.bytes().all(|b| b.is_ascii_alphanumeric());
    Ok(text.lines().find(is_code).with_context(|| text.to_owned())?.to_owned())
}
