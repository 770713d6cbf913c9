//! Certificates of short domains, from a real authority that takes every host to be right.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use axum::http::Method;
use certificates::{
    domain::certificate::{Fault, FaultKind},
    service::order::Ended,
    settings::AcmeSettings,
    worker,
};
use kernel::{domain::event::Event, store::events as event_log};
use push::{certificates::CertificateKey, hub::Hub};
use redirects::store::log;
use serde_json::{Value, json};
use shared::wire::{
    certificates::DomainCertificate,
    contents,
    stream::{Change, Hello, ToEdge},
};
use tests::{
    db::Engine, killed::Killed, pebble::Pebble, product::DEADLINE, raw_edge::hello, redis::free_port,
};

use super::{HOUR_MS, Setting};

const YEAR_MS: i64 = 365 * 24 * HOUR_MS;
const HOST: &str = "go.example";

crate::on_both_engines!(a_proven_domain_gets_a_certificate_which_is_renewed);

impl Setting {
    async fn at(engine: Engine, directory: &str, pebble: &Pebble) -> Result<Self> {
        let settings = AcmeSettings::parse(directory)?.with_trust(pebble.trust()?)?;
        Self::with(engine, Some(settings)).await
    }

    /// Sets the clock to that of the authority, and so much later.
    fn set_clock(&self, later_ms: i64) -> Result<()> {
        let real = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
        let now = self.api.made.app.core.clock.now();
        self.api.made.clock.advance(i64::try_from(real)? + later_ms - now.0);
        Ok(())
    }

    async fn order(&self) -> Result<Vec<Ended>> {
        Ok(worker::work(&self.api.made.app.domains.certificates).await?)
    }

    async fn certificate(&self, host: &str) -> Result<Value> {
        Ok(self.read(host).await?["certificate"].clone())
    }

    /// The certificates that an edge is told of when it connects, which holds none.
    async fn welcomed(&self) -> Result<Vec<DomainCertificate>> {
        self.welcomed_holding(Some(Vec::new())).await
    }

    /// The same of an edge with these digests, or of one that takes no certificates.
    async fn welcomed_holding(&self, certificates: Option<Vec<u64>>) -> Result<Vec<DomainCertificate>> {
        let hello = Hello { certificates, ..hello("e1", None, 0) };
        // A hub of its own: orders would wait for an edge of the other.
        let core = &self.api.made.app.core;
        let hub = Hub::open(core.db.clone()).await?;
        hub.reveal_certificates(CertificateKey::new(core.secrets.certificate));
        let ToEdge::Welcome(welcome) = hub.connect(&hello).await?.next().await? else { bail!("no welcome") };
        Ok(welcome.certificates.iter().map(|one| (**one).clone()).collect())
    }

    /// The changes of certificates as they are stored, in order.
    async fn stored(&self) -> Result<Vec<Option<DomainCertificate>>> {
        let mut conn = self.api.made.app.core.db.read().await?;
        let epoch = log::load_head(&mut conn).await?.epoch;
        let changes = log::list_after(&mut conn, &epoch, 0, 100).await?.into_iter();
        let of = |change| match change {
            Change::Certificate(_, certificate) => Some(certificate.map(|one| (*one).clone())),
            _ => None,
        };
        Ok(changes.filter_map(|event| of(event.change)).collect())
    }

    /// Whether each event of certificates tells of one, in order.
    async fn issue_events(&self) -> Result<Vec<bool>> {
        let mut conn = self.api.made.app.core.db.read().await?;
        let rows = event_log::list_after(&mut conn, 0, &[], u32::MAX).await?;
        let of = |event| match event {
            Event::Certificate(_, error) => Some(error.is_none()),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(|(_, row)| of(row?.event)).collect())
    }
}

async fn a_proven_domain_gets_a_certificate_which_is_renewed(engine: Engine) -> Result<()> {
    let pebble = Pebble::start().await?;
    let all = Setting::at(engine, &pebble.directory(), &pebble).await?;
    let path = format!("{}/{HOST}", all.path());
    ensure!(all.order().await?.is_empty(), "no domain was proven");
    all.prove(HOST).await?;
    ensure!(all.certificate(HOST).await?["state"] == "pending", "it waits");

    // The clock of the tests is a year behind that of the authority.
    let ended = all.order().await?;
    ensure!(matches!(&ended[..], [Ended::Failed(Fault { kind: FaultKind::Unusable, .. })]), "{ended:?}");
    let refused = all.certificate(HOST).await?;
    ensure!(refused["state"] == "failed" && refused.get("issuer").is_none(), "{refused}");
    ensure!(refused["error"].as_str().is_some_and(|error| error.contains("a clock is wrong")), "{refused}");
    ensure!(all.welcomed().await?.is_empty(), "edges do not get it");

    // The clock is set right: the same order gives what can be used now.
    all.set_clock(HOUR_MS)?;
    ensure!(all.order().await? == [Ended::Issued]);
    ensure!(pebble.orders()? == 1, "{}", pebble.orders()?);
    let shown = all.certificate(HOST).await?;
    ensure!(shown["state"] == "valid" && shown.get("error").is_none(), "{shown}");
    ensure!(shown["issuer"].as_str().is_some_and(|issuer| issuer.contains("Pebble")), "{shown}");
    let two_thirds = shown["notAfter"].as_i64().context("notAfter")? - 5 * YEAR_MS / 3;
    let renewal = shown["nextTry"].as_i64().context("nextTry")?;
    ensure!((renewal - two_thirds).abs() < YEAR_MS / 10, "{shown}");
    ensure!(all.order().await?.is_empty(), "nothing is due");
    let trail = all.api.get("/audit?filter=resource=shortDomain").await?.json();
    ensure!(trail[0]["after"]["certificate"]["notAfter"] == shown["notAfter"], "{trail}");

    // Edges get the key, which is stored nowhere as it is.
    let first = all.welcomed().await?;
    ensure!(first.len() == 1 && &*first[0].host == HOST, "{first:?}");
    ensure!(first[0].key.contains("PRIVATE KEY") && first[0].chain.contains("CERTIFICATE"));
    let held = contents::digests_of(vec![contents::digest_of_certificate(HOST, &first[0].chain)]);
    for edge in [Some(held), None] {
        ensure!(all.welcomed_holding(edge).await?.is_empty(), "who holds it, or takes none, is sent none");
    }
    let stored = all.stored().await?;
    ensure!(stored.len() == 1, "{stored:?}");
    ensure!(stored[0].as_ref().is_some_and(|one| !one.key.contains("PRIVATE KEY")), "encrypted");

    all.set_clock(4 * YEAR_MS)?;
    ensure!(all.order().await? == [Ended::Issued], "two thirds are over");
    let renewed = all.welcomed().await?;
    ensure!(renewed.len() == 1 && renewed[0].chain != first[0].chain && renewed[0].key != first[0].key);
    ensure!(all.issue_events().await? == [false, true, true], "{:?}", all.issue_events().await?);

    let put = async |body: Value| all.api.call(Method::PUT, &path, Some(body)).await;
    let ask = async || all.api.call(Method::POST, &format!("{path}/certificate"), None).await;
    let off = put(json!({"automaticCertificate": false})).await?.json();
    ensure!(off["certificate"]["state"] == "off" && off["automaticCertificate"] == false, "{off}");
    ensure!(all.welcomed().await?.is_empty() && all.order().await?.is_empty());
    ensure!(all.stored().await?.last() == Some(&None), "edges learn of it");
    ensure!(ask().await?.problem(409, 40901)[0].contains("automaticCertificate"));
    let on = put(json!({"automaticCertificate": null})).await?.json();
    ensure!(on["certificate"]["state"] == "pending" && on["automaticCertificate"] == true, "{on}");
    ensure!(all.order().await? == [Ended::Issued]);

    let asked = ask().await?;
    ensure!(asked.status == 202 && asked.json()["certificate"]["state"] == "valid", "{asked:?}");
    ask().await?.problem(429, 42901);
    ensure!(all.order().await? == [Ended::Issued], "at once");
    ensure!(all.api.call(Method::DELETE, &path, None).await?.status == 200);
    ensure!(all.welcomed().await?.is_empty() && all.stored().await?.last() == Some(&None));
    let platform = format!("{}/tn.gg", all.path());
    let body = Some(json!({"automaticCertificate": false}));
    all.api.call(Method::PUT, &platform, body).await?.problem(409, 40901);
    Ok(())
}

/// A server before the authority that finds requests for orders too many while a file is there.
struct Limiting {
    port: u16,
    limit: PathBuf,
    child: Killed,
    _dir: tempfile::TempDir,
}

impl Limiting {
    async fn start(pebble: &Pebble) -> Result<Self> {
        let (port, dir) = (free_port()?, tempfile::tempdir()?);
        let limit = dir.path().join("limited");
        let file = dir.path().join("nginx.conf");
        fs::write(&file, configuration(port, dir.path(), &limit, pebble))?;
        let mut command = Command::new("/usr/sbin/nginx");
        command.args(["-e", "stderr"]).arg("-c").arg(&file).arg("-p").arg(dir.path()).stdin(Stdio::null());
        let mut limiting = Self { port, limit, child: Killed(command.spawn().context("nginx")?), _dir: dir };
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            if let Some(status) = limiting.child.try_wait()? {
                bail!("nginx ended: {status}");
            }
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(limiting);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("nginx did not come up")
    }
}

fn configuration(port: u16, dir: &Path, limit: &Path, pebble: &Pebble) -> String {
    let (dir, limit) = (dir.display(), limit.display());
    let (certificate, key) = (pebble.trust_file(), pebble.key_file());
    let problem = r#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many orders"}"#;
    format!(
        "daemon off; master_process off; pid {dir}/pid; error_log stderr;\nevents {{}}\nhttp {{\n\
         access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/f;\n\
         uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;\nserver {{\nlisten 127.0.0.1:{port} ssl;\n\
         ssl_certificate {}; ssl_certificate_key {};\nlocation = /order-plz {{\ndefault_type application/problem+json;\n\
         if (-f {limit}) {{ add_header Retry-After 3600 always; return 429 '{problem}'; }}\n\
         proxy_set_header Host $http_host; proxy_pass https://127.0.0.1:{};\n}}\n\
         location / {{ proxy_set_header Host $http_host; proxy_pass https://127.0.0.1:{}; }}\n}}\n}}\n",
        certificate.display(),
        key.display(),
        pebble.port,
        pebble.port
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limited_domain_waits_as_the_authority_asks_and_others_do_not() -> Result<()> {
    let pebble = Pebble::start().await?;
    let limiting = Limiting::start(&pebble).await?;
    let directory = format!("https://127.0.0.1:{}/dir", limiting.port);
    let all = Setting::at(Engine::Sqlite, &directory, &pebble).await?;
    all.set_clock(HOUR_MS)?;
    all.prove(HOST).await?;
    fs::write(&limiting.limit, "")?;
    let ended = all.order().await?;
    ensure!(matches!(&ended[..], [Ended::Failed(Fault { kind: FaultKind::Limited, .. })]), "{ended:?}");
    let limited = all.certificate(HOST).await?;
    let error = limited["error"].as_str().context("error")?;
    ensure!(limited["state"] == "failed" && error.contains("too many orders"), "{limited}");
    let wait = limited["nextTry"].as_i64().context("nextTry")? - all.api.made.app.core.clock.now().0;
    ensure!((HOUR_MS - 60_000..=HOUR_MS).contains(&wait), "{wait} ms");

    fs::remove_file(&limiting.limit)?;
    all.prove("to.example").await?;
    ensure!(all.order().await? == [Ended::Issued], "of the other one");
    ensure!(all.certificate(HOST).await?["state"] == "failed", "it still waits");
    all.set_clock(3 * HOUR_MS)?;
    ensure!(all.order().await? == [Ended::Issued]);
    ensure!(all.certificate(HOST).await?["state"] == "valid");
    Ok(())
}
