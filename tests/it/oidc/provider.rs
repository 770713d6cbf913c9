//! The provider as a process, and a browser that signs in there.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use oidc::OidcSettings;
use reqwest::{Certificate, Response, header};
use serde_json::{Value, json};
use tests::killed::Killed;
use url::Url;

/// Longest wait for the process.
const DEADLINE: Duration = Duration::from_secs(30);

/// Most redirects and forms of one sign-in; the provider has about ten.
const MAX_STEPS: usize = 20;

const CLIENT_ID: &str = "waymark";
const CLIENT_SECRET: &str = "a secret of the client: 100 %";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/oidc")
}

/// A certificate for 127.0.0.1.
pub(super) struct Tls {
    dir: tempfile::TempDir,
}

impl Tls {
    pub(super) fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let key = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        std::fs::write(dir.path().join("cert.pem"), key.cert.pem())?;
        std::fs::write(dir.path().join("key.pem"), key.signing_key.serialize_pem())?;
        Ok(Self { dir })
    }

    /// The file of the certificate.
    pub(super) fn certificate(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }
}

/// A provider that runs; killed when dropped.
pub(super) struct Running {
    pub(super) port: u16,
    tls: Option<Tls>,
    http: reqwest::Client,
    _child: Killed,
}

impl Running {
    /// Starts a provider; with port 0 on a free one.
    pub(super) fn start(port: u16, tls: Option<Tls>) -> Result<Self> {
        // The tests have no main function that does it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = folder();
        ensure!(
            folder.join("node_modules").is_dir(),
            "{} has no node_modules: run the tests by tests/run, or `npm ci` there",
            folder.display()
        );
        let mut command = Command::new("node");
        command.arg(folder.join("provider.mjs")).arg(port.to_string());
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(DEADLINE);
        if let Some(tls) = &tls {
            command.args([tls.certificate(), tls.dir.path().join("key.pem")]);
            let pem = std::fs::read(tls.certificate())?;
            http = http.tls_certs_only([Certificate::from_pem(&pem)?]);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("node")?;
        let mut lines = BufReader::new(child.stdout.take().context("stdout")?).lines();
        let (said, port) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = said.send(lines.next());
            lines.for_each(drop);
        });
        let port = port.recv_timeout(DEADLINE)?.context("no port")??.parse()?;
        Ok(Self { port, tls, http: http.build()?, _child: Killed(child) })
    }

    pub(super) fn issuer(&self) -> String {
        format!("{}://127.0.0.1:{}", if self.tls.is_some() { "https" } else { "http" }, self.port)
    }

    /// The settings of a client of it.
    pub(super) fn settings(&self) -> Result<OidcSettings> {
        let settings = OidcSettings::parse(&self.issuer(), CLIENT_ID, CLIENT_SECRET)?;
        Ok(if self.tls.is_some() { settings.with_ca(self.ca()?)? } else { settings })
    }

    /// Its certificate, as PEM.
    pub(super) fn ca(&self) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.tls.as_ref().context("it has no certificate")?.certificate())?)
    }

    /// Changes how it behaves; gives how often each path was asked for.
    pub(super) async fn set(&self, change: Value) -> Result<Value> {
        let url = format!("{}/test", self.issuer());
        Ok(self.http.post(url).json(&change).send().await?.error_for_status()?.json().await?)
    }

    /// What is wrong with its answers from here on.
    pub(super) async fn spoil(&self, how: &str) -> Result<()> {
        self.set(json!({"spoil": how})).await.map(drop)
    }

    /// Signs in as a new browser, from the URL of the beginning up to the redirect back, which is not followed.
    pub(super) async fn sign_in(&self, begin: &Url, name: &str, back: &str) -> Result<Url> {
        let mut browser = Browser { http: self.http.clone(), cookies: BTreeMap::new() };
        let mut url = begin.clone();
        for _ in 0..MAX_STEPS {
            let mut answer = browser.open(&url, None).await?;
            if answer.status() == 200 {
                // The provider's own pages: first for name and password, then for consent.
                let page = answer.text().await?;
                let form = if page.contains("name=\"login\"") {
                    format!("prompt=login&login={name}&password=x")
                } else {
                    "prompt=consent".to_owned()
                };
                ensure!(page.contains("<form"), "{url}: {page}");
                answer = browser.open(&url, Some(form)).await?;
            }
            let status = answer.status();
            let Some(location) = answer.headers().get(header::LOCATION) else {
                bail!("{url}: {status} {}", answer.text().await?)
            };
            url = url.join(location.to_str()?)?;
            if url.as_str().starts_with(back) {
                return Ok(url);
            }
        }
        bail!("too many steps, the last was {url}")
    }
}

struct Browser {
    http: reqwest::Client,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    async fn open(&mut self, url: &Url, form: Option<String>) -> Result<Response> {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = match form {
            None => self.http.get(url.clone()),
            Some(form) => self
                .http
                .post(url.clone())
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form),
        };
        let answer = request.header(header::COOKIE, cookies.join("; ")).send().await?;
        for set in answer.headers().get_all(header::SET_COOKIE) {
            let pair = set.to_str()?.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').context("a cookie")?;
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(answer)
    }
}

/// A parameter of a URL.
pub(super) fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}
