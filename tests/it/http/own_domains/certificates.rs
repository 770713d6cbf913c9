//! Certificates of short domains, from a real authority that takes every host to be right.

mod account;

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
    sql::execute,
};

use super::{HOUR_MS, Setting};

const DAY_MS: i64 = 24 * HOUR_MS;
/// How long certificates of the authority live.
const LIFE_MS: i64 = 90 * DAY_MS;
const HOST: &str = "go.example";

/// 60 days pass for the certificate.
const SIXTY_DAYS_LATER: &str = "UPDATE domain_certificates SET not_before = not_before - 5184000000, \
    not_after = not_after - 5184000000, next_try = next_try - 5184000000";
/// 100 days pass, and its next try is 90 days away.
const ENDED_AND_FORGOTTEN: &str = "UPDATE domain_certificates SET not_before = not_before - 8640000000, \
    not_after = not_after - 8640000000, next_try = next_try + 2592000000";

crate::on_both_engines!(a_proven_domain_gets_a_certificate_which_is_renewed);

impl Setting {
    async fn at(engine: Engine, directory: &str, pebble: &Pebble) -> Result<Self> {
        let settings = AcmeSettings::parse(directory)?.with_trust(pebble.trust()?)?;
        Self::with(engine, Some(settings)).await
    }

    /// Sets the clock of control to that of the database and the authority, and so much later.
    fn set_clock(&self, later_ms: i64) -> Result<()> {
        let now = self.api.made.app.core.clock.now();
        self.api.made.clock.advance(now_ms()? + later_ms - now.0);
        Ok(())
    }

    /// Changes rows, in place of a wait: the clock of the database cannot be set.
    async fn run(&self, sql: &'static str) -> Result<()> {
        let changed = execute(&self.api.made.app.core.db, sql).await?;
        ensure!(changed == 1, "{changed} rows: {sql}");
        Ok(())
    }

    async fn order(&self) -> Result<Vec<Ended>> {
        Ok(worker::work(&self.api.made.app.domains.certificates).await?)
    }

    async fn certificate(&self, host: &str) -> Result<Value> {
        Ok(self.read(host).await?["certificate"].clone())
    }

    /// The certificates that an edge gets when it connects, which holds none.
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

/// The time of this machine, which is that of the database and of the authority.
pub(super) fn now_ms() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?)
}

async fn a_proven_domain_gets_a_certificate_which_is_renewed(engine: Engine) -> Result<()> {
    let pebble = Pebble::start().await?;
    let all = Setting::at(engine, &pebble.directory(), &pebble).await?;
    let path = format!("{}/{HOST}", all.path());
    ensure!(all.order().await?.is_empty(), "no domain was proven");
    all.prove(HOST).await?;
    ensure!(all.certificate(HOST).await?["state"] == "pending", "it waits");

    // The clock of this control is a year behind: that of the database decides.
    ensure!(now_ms()? - all.api.made.app.core.clock.now().0 > 300 * DAY_MS);
    ensure!(all.order().await? == [Ended::Issued]);
    ensure!(pebble.orders()? == 1, "{}", pebble.orders()?);
    let shown = all.certificate(HOST).await?;
    ensure!(shown["state"] == "valid" && shown.get("error").is_none(), "{shown}");
    ensure!(shown["issuer"].as_str().is_some_and(|issuer| issuer.contains("Pebble")), "{shown}");
    let end = shown["notAfter"].as_i64().context("notAfter")?;
    ensure!((end - now_ms()? - LIFE_MS).abs() < HOUR_MS, "{shown}");
    let renewal = shown["nextTry"].as_i64().context("nextTry")?;
    ensure!((renewal - (end - LIFE_MS / 3)).abs() < DAY_MS, "{shown}");
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

    // However wrong the clock of a control is, nothing is ordered again.
    for days in [-90, -1, 1, 90] {
        all.set_clock(days * DAY_MS)?;
        ensure!(all.order().await?.is_empty(), "{days} days");
        ensure!(all.certificate(HOST).await? == shown, "{days} days");
    }
    ensure!(pebble.orders()? == 1, "{}", pebble.orders()?);
    all.run(SIXTY_DAYS_LATER).await?;
    ensure!(all.order().await? == [Ended::Issued], "two thirds are over");
    ensure!(all.order().await?.is_empty(), "nothing is due");
    let renewed = all.welcomed().await?;
    ensure!(renewed.len() == 1 && renewed[0].chain != first[0].chain && renewed[0].key != first[0].key);

    // What a clock of the database that was ahead left behind lets no certificate end in silence.
    all.set_clock(-90 * DAY_MS)?;
    all.run(ENDED_AND_FORGOTTEN).await?;
    ensure!(all.certificate(HOST).await?["state"] == "pending", "it has ended");
    ensure!(all.order().await? == [Ended::Issued]);
    ensure!(all.issue_events().await? == [true, true, true], "{:?}", all.issue_events().await?);
    all.set_clock(0)?;

    let put = async |body: Value| all.api.put(&path, body).await;
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
    ensure!(all.api.delete(&path).await?.status == 200);
    ensure!(all.welcomed().await?.is_empty() && all.stored().await?.last() == Some(&None));
    let platform = format!("{}/tn.gg", all.path());
    let body = Some(json!({"automaticCertificate": false}));
    all.api.call(Method::PUT, &platform, body).await?.problem(409, 40901);
    Ok(())
}

/// A server before the authority.
struct Front {
    port: u16,
    /// While this file is there, requests for orders are too many.
    limit: PathBuf,
    /// While this file is there, answers come 90 days later.
    late: PathBuf,
    /// While this file is there, requests for orders are refused as those of somebody who may make none.
    refuse: PathBuf,
    /// While this file is there, requests about accounts are.
    deactivated: PathBuf,
    child: Killed,
    _dir: tempfile::TempDir,
}

impl Front {
    async fn start(pebble: &Pebble) -> Result<Self> {
        let (port, dir) = (free_port()?, tempfile::tempdir()?);
        let names = ["limited", "late", "refuse", "deactivated", "nginx.conf"];
        let [limit, late, refuse, deactivated, file] = names.map(|name| dir.path().join(name));
        let switches = [&limit, &late, &refuse, &deactivated];
        fs::write(&file, configuration(port, dir.path(), switches, pebble))?;
        let mut command = Command::new("/usr/sbin/nginx");
        command.args(["-e", "stderr"]).arg("-c").arg(&file).arg("-p").arg(dir.path()).stdin(Stdio::null());
        let child = Killed(command.spawn().context("nginx")?);
        let mut front = Self { port, limit, late, refuse, deactivated, child, _dir: dir };
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            if let Some(status) = front.child.try_wait()? {
                bail!("nginx ended: {status}");
            }
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(front);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("nginx did not come up")
    }

    fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.port)
    }
}

fn configuration(port: u16, dir: &Path, switches: [&PathBuf; 4], pebble: &Pebble) -> String {
    let (dir, [limit, late, refuse, deactivated]) = (dir.display(), switches.map(|file| file.display()));
    let (certificate, key) = (pebble.trust_file(), pebble.key_file());
    let problem = r#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many orders"}"#;
    let unauthorized = r#"{"type":"urn:ietf:params:acme:error:unauthorized","detail":"not you"}"#;
    let pass = format!("proxy_set_header Host $http_host; proxy_pass https://127.0.0.1:{};", pebble.port);
    format!(
        "daemon off; master_process off; pid {dir}/pid; error_log stderr;\nevents {{}}\nhttp {{\n\
         access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/f;\n\
         uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;\nserver {{\nlisten 127.0.0.1:{port} ssl;\n\
         ssl_certificate {}; ssl_certificate_key {};\n\
         set $age \"\"; if (-f {late}) {{ set $age 7776000; }} add_header Age $age always;\n\
         location = /order-plz {{\ndefault_type application/problem+json;\n\
         if (-f {limit}) {{ add_header Retry-After 3600 always; return 429 '{problem}'; }}\n\
         if (-f {refuse}) {{ return 403 '{unauthorized}'; }}\n{pass}\n}}\n\
         location /my-account/ {{\ndefault_type application/problem+json;\n\
         if (-f {deactivated}) {{ return 403 '{unauthorized}'; }}\n{pass}\n}}\n\
         location / {{ {pass} }}\n}}\n}}\n",
        certificate.display(),
        key.display(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limited_domain_waits_as_the_authority_asks_and_others_do_not() -> Result<()> {
    let pebble = Pebble::start().await?;
    let front = Front::start(&pebble).await?;
    let all = Setting::at(Engine::Sqlite, &front.directory(), &pebble).await?;
    all.prove(HOST).await?;
    fs::write(&front.limit, "")?;
    let ended = all.order().await?;
    ensure!(matches!(&ended[..], [Ended::Failed(Fault { kind: FaultKind::Limited, .. })]), "{ended:?}");
    let limited = all.certificate(HOST).await?;
    let error = limited["error"].as_str().context("error")?;
    ensure!(limited["state"] == "failed" && error.contains("too many orders"), "{limited}");
    let wait = limited["nextTry"].as_i64().context("nextTry")? - now_ms()?;
    ensure!((HOUR_MS - 60_000..=HOUR_MS).contains(&wait), "{wait} ms");

    fs::remove_file(&front.limit)?;
    all.prove("to.example").await?;
    ensure!(all.order().await? == [Ended::Issued], "of the other one");
    ensure!(all.certificate(HOST).await?["state"] == "failed", "it still waits");
    all.run("UPDATE domain_certificates SET next_try = next_try - 3600000 WHERE host = 'go.example'").await?;
    ensure!(all.order().await? == [Ended::Issued]);
    ensure!(all.certificate(HOST).await?["state"] == "valid");
    ensure!(all.issue_events().await? == [false, true, true], "{:?}", all.issue_events().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_ordered_while_the_clock_of_the_database_is_wrong() -> Result<()> {
    let pebble = Pebble::start().await?;
    let front = Front::start(&pebble).await?;
    let all = Setting::at(Engine::Sqlite, &front.directory(), &pebble).await?;
    let compare = async || worker::compare_clocks(&all.api.made.app.domains.certificates).await;
    ensure!(compare().await?.is_none());
    all.prove(HOST).await?;
    // The answers of the authority are of now, and were kept on their way for 90 days: so it is that much later there.
    fs::write(&front.late, "")?;
    ensure!(compare().await?.is_some_and(|fault| fault.text.contains("hours behind")));
    let ended = all.order().await?;
    ensure!(matches!(&ended[..], [Ended::Failed(Fault { kind: FaultKind::Clock, .. })]), "{ended:?}");
    let shown = all.certificate(HOST).await?;
    ensure!(shown["state"] == "pending" && shown.get("error").is_none(), "{shown}");
    ensure!(all.order().await?.is_empty(), "the authority is left alone");
    ensure!(pebble.orders()? == 0 && all.issue_events().await?.is_empty(), "it is not the domain's fault");

    // The clock is right, and the end of the pause was written by the wrong one.
    fs::remove_file(&front.late)?;
    all.run("UPDATE certificate_authorities SET paused_until = paused_until + 7776000000").await?;
    ensure!(compare().await?.is_none());
    ensure!(all.order().await? == [Ended::Issued]);
    ensure!(pebble.orders()? == 1, "{}", pebble.orders()?);
    Ok(())
}
