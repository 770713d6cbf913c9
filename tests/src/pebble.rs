//! A certificate authority (ACME): Debian's `pebble`, on free ports of this machine.

use std::{
    fs::{self, File},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::{killed::Killed, product::DEADLINE, redis::free_port};

/// How long its certificates live: 90 days.
const LIFE_SECONDS: u64 = 90 * 24 * 60 * 60;

/// Where an authority finds the hosts that it checks.
#[derive(Debug, Clone, Copy)]
pub enum Checks {
    /// Nowhere: every host is taken to be right.
    Nothing,
    /// On this machine, by a DNS server.
    Hosts {
        /// Who is asked for addresses.
        dns: SocketAddr,
        /// The port that is asked over HTTP.
        http: u16,
        /// The port that is asked over TLS.
        tls: u16,
    },
}

/// An authority whose ports and certificate are there, and which does not run yet.
pub struct Prepared {
    port: u16,
    management: u16,
    dir: tempfile::TempDir,
}

/// An authority that runs; it ends with this.
pub struct Pebble {
    child: Killed,
    /// Its port.
    pub port: u16,
    management: u16,
    dir: tempfile::TempDir,
}

impl Prepared {
    /// Takes ports, and makes a certificate for 127.0.0.1.
    pub fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let key = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        fs::write(dir.path().join("cert.pem"), key.cert.pem())?;
        fs::write(dir.path().join("key.pem"), key.signing_key.serialize_pem())?;
        Ok(Self { port: free_port()?, management: free_port()?, dir })
    }

    /// The URL of its directory.
    #[must_use]
    pub fn directory(&self) -> String {
        directory(self.port)
    }

    /// The certificate of its server, which is its own root.
    #[must_use]
    pub fn trust_file(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    /// Starts it.
    pub async fn start(self, checks: Checks) -> Result<Pebble> {
        let Self { port, management, dir } = self;
        let (http, tls) = match checks {
            Checks::Nothing => (1, 1),
            Checks::Hosts { http, tls, .. } => (http, tls),
        };
        let config = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"), "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": dir.path().join("cert.pem"), "privateKey": dir.path().join("key.pem"),
            "httpPort": http, "tlsPort": tls, "ocspResponderURL": "", "externalAccountBindingRequired": false,
            "certificateValidityPeriod": LIFE_SECONDS}});
        let file = dir.path().join("config.json");
        fs::write(&file, config.to_string())?;
        let mut command = Command::new("pebble");
        command.arg("-config").arg(&file);
        // No pauses, and nothing by chance: a nonce that is refused would count as an order.
        command
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", "0");
        match checks {
            Checks::Nothing => command.env("PEBBLE_VA_ALWAYS_VALID", "1"),
            Checks::Hosts { dns, .. } => command.args(["-dnsserver", &dns.to_string()]),
        };
        let log = File::create(dir.path().join("log"))?;
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let mut pebble = Pebble { child: Killed(child.context("pebble")?), port, management, dir };
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            if let Some(status) = pebble.child.try_wait()? {
                bail!("pebble ended: {status}: {}", pebble.log()?);
            }
            if [port, management].iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok()) {
                return Ok(pebble);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("pebble did not come up")
    }
}

impl Pebble {
    /// Starts one that takes every host to be right.
    pub async fn start() -> Result<Self> {
        Prepared::new()?.start(Checks::Nothing).await
    }

    /// The URL of its directory.
    #[must_use]
    pub fn directory(&self) -> String {
        directory(self.port)
    }

    /// The certificate of its server, which is its own root, in PEM.
    pub fn trust(&self) -> Result<Vec<u8>> {
        Ok(fs::read(self.dir.path().join("cert.pem"))?)
    }

    /// The key of the certificate of its server, in PEM.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }

    /// The certificate of its server as a file.
    #[must_use]
    pub fn trust_file(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    /// The root of the certificates that it gives, in PEM.
    pub async fn root(&self) -> Result<Vec<u8>> {
        let own = reqwest::Certificate::from_pem(&self.trust()?)?;
        let client = reqwest::Client::builder().tls_certs_only([own]).no_proxy().build()?;
        let url = format!("https://127.0.0.1:{}/roots/0", self.management);
        Ok(client.get(url).send().await?.error_for_status()?.bytes().await?.to_vec())
    }

    /// How many orders it got.
    pub fn orders(&self) -> Result<usize> {
        Ok(self.log()?.matches("POST /order-plz").count())
    }

    fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.dir.path().join("log"))?)
    }
}

fn directory(port: u16) -> String {
    format!("https://127.0.0.1:{port}/dir")
}
