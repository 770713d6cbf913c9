//! Erasure of personal data: what is left of people in the whole database, and what of others.

mod aged;
mod asked;
mod removed;
mod results;
mod turns;

use std::collections::BTreeMap;

use ::privacy::{
    service::steps::{self, Stepped},
    store::erasures,
    worker::work,
};
use anyhow::{Context, Result, ensure};
use axum::http::Method;
use control::worker::ingest_scans::ingest;
use events::store::webhook_messages;
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::{geo::CityDatabase, wire::scan::ScanRecord};
use tests::{
    db::{Engine, Location, TestApp},
    fingerprint::fingerprint,
    mmdb,
};
use tokio_util::sync::CancellationToken;

use super::{
    Api,
    authentication::{Brand, HOUR, id},
};
use crate::store::{
    scans::{batch, record},
    schema::run,
};

crate::on_both_engines!(
    a_network_is_erased_for_a_time,
    a_thng_is_erased_and_its_profile_made_again,
    an_erasure_survives_killed_workers,
);
crate::on_clickhouse!(
    a_network_is_erased_for_a_time,
    a_thng_is_erased_and_its_profile_made_again,
    an_erasure_survives_killed_workers,
);

/// Some days before the clock of the tests begins.
const BEGIN: i64 = 1_760_000_000_000 - 200 * HOUR;
/// After everything that a test does.
const END: i64 = 1_760_000_000_000 + 200 * HOUR;

const IP: &str = "203.0.113.77";
/// What the database must not hold afterwards: the address as a text and in both spellings of bytes, what the client sent, and
/// where its network is.
const MARKS: [&str; 7] =
    ["203.0.113.77", "cb00714d", "marked 7q", "who=marked7q", "referer7q", "sw-ke", "46.948125"];

fn agent(model: &str) -> String {
    format!(
        "Mozilla/5.0 (Linux; Android 14; {model} Build/UP1A.231005.007) AppleWebKit/537.36 (KHTML, like Gecko) \
         Chrome/126.0.6478.122 Mobile Safari/537.36"
    )
}

/// A scan by the person whose data is erased.
fn marked(short_id: &str, hour: i64) -> Result<ScanRecord> {
    Ok(ScanRecord {
        ip: IP.parse()?,
        referer: Some("https://referer7q.example/".into()),
        language: Some("sw-KE".into()),
        entry_url: format!("https://tn.gg/{short_id}?who=marked7q").into(),
        ..record(short_id, &agent("Marked 7Q"), BEGIN + hour * HOUR)
    })
}

/// A scan by somebody else.
fn other(short_id: &str, hour: i64) -> Result<ScanRecord> {
    Ok(ScanRecord { ip: "192.0.2.9".parse()?, ..record(short_id, &agent("Other 8R"), BEGIN + hour * HOUR) })
}

/// Two items with links `A` and `B`.
struct Scanned {
    api: Api,
    brand_thngs: [String; 2],
    scans: u64,
}

impl Scanned {
    async fn new(engine: Engine) -> Result<Self> {
        let city = |network, city: &str, latitude: f64| {
            let place = json!({"city": city, "state1": city, "country_code": "CH", "latitude": latitude,
                "longitude": 7.447_5});
            (network, place)
        };
        let cities = [city("203.0.113.0/24", "Bern", 46.948_125), city("192.0.2.0/24", "Thun", 46.751_125)];
        let geo = CityDatabase::parse(mmdb::database(6, &cities))?;
        let made = TestApp::with(engine, |parts| parts.geo_ip = Some(std::sync::Arc::new(geo))).await?;
        let api = Api::over(made).await?;
        let brand = Brand::new(&api).await?;
        let brand_thngs = [brand.thng("A").await?, brand.thng("B").await?];
        for (thng, short_id) in brand_thngs.iter().zip(["A", "B"]) {
            let link = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": short_id});
            // Without `Accept` the answer is the image of its code.
            api.post("/redirections", link).await?.must_be(200)?;
        }
        Ok(Self { api, brand_thngs, scans: 0 })
    }

    async fn scan(&mut self, records: &[ScanRecord]) -> Result<()> {
        ingest(&self.api.made.app, &batch(1, self.scans, records)).await?;
        self.scans += records.len() as u64;
        Ok(())
    }

    /// The scans by edges of an item, newest first.
    async fn scans_of(&self, item: usize) -> Result<Vec<Value>> {
        let uri = format!("/thngs/{}/actions/implicitScans?context=true&perPage=100", self.brand_thngs[item]);
        serde_json::from_value(self.api.get(&uri).await?.json()).context("scans")
    }

    /// Whether the profile of an item is what its actions give.
    async fn profile_fits(&self, item: usize) -> Result<()> {
        let body = json!({"thng": self.brand_thngs[item]});
        let replayed = self.api.post("/authentication/replay", body).await?.json();
        ensure!(replayed["profileMatches"] == true, "{replayed}");
        Ok(())
    }
}

/// The rows in which a mark stands, in every table of the database and of the store of scans. What an erasure was asked for
/// with, and the audit trail, are receipts.
async fn found(api: &Api, marks: &[&str]) -> Result<Vec<String>> {
    let location = &api.made.db.location;
    let mut tables: BTreeMap<String, Vec<String>> = fingerprint(location).await?;
    if let Location::Sqlite(path) = location {
        let scans = Location::Sqlite(scan_store::store::file_of(path));
        tables.extend(
            fingerprint(&scans).await?.into_iter().map(|(name, rows)| (format!("scans.{name}"), rows)),
        );
    }
    let mut found = Vec::new();
    for (table, rows) in tables {
        if table == "erasures" || table.starts_with("audit") {
            continue;
        }
        for row in rows {
            let text = row.to_lowercase();
            found.extend(
                marks
                    .iter()
                    .filter(|mark| text.contains(**mark))
                    .map(|mark| format!("{table}: {mark} in {row}")),
            );
        }
    }
    Ok(found)
}

/// Asks for an erasure; gives the path of its receipt.
async fn ask(api: &Api, body: Value) -> Result<String> {
    let answer = api.post("/privacy/erasures", body).await?;
    ensure!(answer.status == 202 && answer.json()["status"] == "ENQUEUED", "{answer:?}");
    let location = answer.header("location").context("location")?;
    ensure!(location.ends_with(&format!("/privacy/erasures/{}", id(&answer.json()))), "{location}");
    Ok(format!("/privacy/erasures/{}", id(&answer.json())))
}

/// Lets the worker bring all erasures to their end.
async fn work_all(api: &Api) -> Result<()> {
    while work(&api.made.app.privacy, 3, &CancellationToken::new()).await? {}
    Ok(())
}

async fn receipt(api: &Api, path: &str) -> Result<Value> {
    let receipt = api.get(path).await?.json();
    ensure!(receipt["status"] == "COMPLETED" && receipt["completedAt"].is_i64(), "{receipt}");
    ensure!(receipt["begunAt"].as_i64() >= receipt["createdAt"].as_i64(), "{receipt}");
    Ok(receipt)
}

/// Sends a body from the marked address.
async fn post(api: &Api, key: &str, uri: &str, body: &Value) -> Result<Value> {
    let agent = agent("Marked 7Q");
    let headers = [("user-agent", agent.as_str())];
    let answer = api.call_from(IP, &headers, (key, Method::POST, uri), Some(body.clone())).await?;
    ensure!(answer.status.is_success(), "{uri}: {answer:?}");
    Ok(answer.json())
}

async fn a_network_is_erased_for_a_time(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine).await?;
    let before = ScanRecord { ip: "203.0.113.78".parse()?, ..record("A", &agent("Early 6P"), BEGIN - HOUR) };
    let unknown = ScanRecord { folded: "NOTHING".into(), ..marked("NOTHING", 1)? };
    scanned.scan(&[before, marked("A", 1)?, other("A", 2)?, marked("B", 3)?, unknown]).await?;
    let (key, thng) = (scanned.api.key.clone(), scanned.brand_thngs[0].clone());
    post(&scanned.api, &key, "/actions/scans", &json!({"thng": thng})).await?;
    // The same person in another account.
    let api = &scanned.api;
    let (_, others_thng) = api.others().await?;
    let link =
        json!({"platformId": others_thng, "defaultRedirectUrl": "https://example.com/", "shortId": "C"});
    api.call_as(&api.other_key, Method::POST, "/redirections", Some(link)).await?;
    let uri = format!("/accounts/{}", api.other_account);
    api.call_as(&api.other_key, Method::PUT, &uri, Some(json!({"personalData": "full"}))).await?;
    let elsewhere = ScanRecord { domain: "other.gg".into(), ..marked("C", 1)? };
    scanned.scan(&[elsewhere]).await?;
    let api = &scanned.api;
    let others = async || -> Result<Value> {
        let uri = "/actions/implicitScans?context=true";
        Ok(api.call_as(&api.other_key, Method::GET, uri, None).await?.json())
    };
    let others_before = others().await?;
    ensure!(others_before[0]["context"]["ipAddress"] == IP, "{others_before}");
    let days = format!("from={BEGIN}&to={}&interval=day", BEGIN + 100 * HOUR);
    let stats = api.get(&format!("/scans/stats?{days}&groupBy=country")).await?.json();

    let path = ask(api, json!({"network": "203.0.113.0/24", "from": BEGIN, "to": END})).await?;
    work_all(api).await?;
    let receipt = receipt(api, &path).await?;
    let rows = &receipt["rows"];
    ensure!(receipt["type"] == "network" && receipt["network"] == "203.0.113.0/24", "{receipt}");
    ensure!(receipt["requestedBy"] == api.made.operator.as_str(), "{receipt}");
    ensure!((&rows["scans"], &rows["actions"]) == (&json!(2), &json!(1)), "{receipt}");

    let of_a = scanned.scans_of(0).await?;
    ensure!(of_a.len() == 3, "no scan is removed: {of_a:?}");
    let cut = &of_a[1];
    let context = json!({"userAgentName": cut["context"]["userAgentName"], "operatingSystemName":
        cut["context"]["operatingSystemName"], "city": "Bern", "region": "Bern", "countryCode": "CH",
        "entryUrl": "https://tn.gg/A"});
    let mut shown = cut["context"].clone();
    shown.as_object_mut().context("context")?.remove("timeZone");
    ensure!(shown == context && cut["locationSource"] == "unknown", "{cut}");
    ensure!(cut.get("location").is_none(), "{cut}");
    // Who scanned before the time, or from elsewhere, keeps everything.
    ensure!(of_a[2]["context"]["ipAddress"] == "203.0.113.78" && of_a[2]["location"].is_object(), "{of_a:?}");
    ensure!(of_a[0]["context"]["ipAddress"] == "192.0.2.9", "{of_a:?}");
    ensure!(others().await? == others_before, "another account is touched");
    ensure!(
        api.get(&format!("/scans/stats?{days}&groupBy=country")).await?.json() == stats,
        "statistics are touched"
    );
    scanned.profile_fits(0).await?;
    scanned.profile_fits(1).await?;

    // What comes later is recorded as ever, also with the texts that were erased.
    let late = ScanRecord { ip: "203.0.113.79".parse()?, ..marked("B", 4)? };
    scanned.scan(&[late]).await?;
    let of_b = scanned.scans_of(1).await?;
    ensure!(of_b.len() == 2 && of_b[0]["context"]["ipAddress"] == "203.0.113.79", "{of_b:?}");
    Ok(())
}

async fn a_thng_is_erased_and_its_profile_made_again(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine).await?;
    scanned.scan(&[marked("A", 1)?, marked("A", 2)?, other("B", 3)?]).await?;
    let (key, thng) = (scanned.api.key.clone(), scanned.brand_thngs[0].clone());
    let api = &scanned.api;
    // What a webhook is still to be sent.
    let waits = json!({"type": "action.created", "data": {"thng": thng, "context": {"ipAddress": IP, "city": "Bern"}}});
    let message = webhook_messages::New {
        webhook: 1,
        account: api.made.account,
        message_id: "m".to_owned(),
        kind: "action.scans".to_owned(),
        body: waits.to_string(),
    };
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    webhook_messages::insert(&mut tx, api.made.app.core.clock.now(), &[message]).await?;
    tx.commit().await?;
    post(
        api,
        &key,
        "/actions/scans",
        &json!({"thng": thng, "location": {"latitude": 46.948_125, "longitude": 7.4}}),
    )
    .await?;
    ensure!(!found(api, &MARKS).await?.is_empty(), "the marks can be found");
    // What a result and the verdict remember of the scan.
    let of_a = scanned.scans_of(0).await?;
    api.post("/authentication", json!({"id": of_a[0]["id"]})).await?.must_be(200)?;
    let of_b = scanned.scans_of(1).await?;

    let path = ask(api, json!({"thng": thng})).await?;
    work_all(api).await?;
    let receipt = receipt(api, &path).await?;
    let rows = &receipt["rows"];
    ensure!((&rows["scans"], &rows["actions"]) == (&json!(2), &json!(2)), "{receipt}");
    ensure!((&rows["webhookMessages"], &rows["standings"]) == (&json!(1), &json!(1)), "{receipt}");
    ensure!(rows["profiles"].as_u64() > Some(0) && receipt["thng"] == thng.as_str(), "{receipt}");
    let left = found(api, &MARKS).await?;
    ensure!(left.is_empty(), "{left:?}");
    ensure!(scanned.scans_of(0).await?.len() == 2, "scans stay");
    ensure!(scanned.scans_of(1).await? == of_b, "another item is touched");
    scanned.profile_fits(0).await?;

    // A second one finds nothing to change.
    let again = ask(api, json!({"thng": thng})).await?;
    work_all(api).await?;
    let again = self::receipt(api, &again).await?;
    let counts: Vec<u64> =
        again["rows"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).collect();
    ensure!(counts == [0; 8], "{again}");
    Ok(())
}

/// Each step is done by a worker that is killed after it; one in the middle of a step on scans.
async fn an_erasure_survives_killed_workers(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine).await?;
    scanned.scan(&[marked("A", 1)?, marked("B", 2)?, other("A", 3)?, marked("A", 4)?]).await?;
    let api = &scanned.api;
    let (db, state) = (&api.made.app.core.db, &api.made.app.privacy);
    let path = ask(api, json!({"network": IP, "from": BEGIN, "to": END})).await?;
    let (mut first, mut is_killed_between) = (None, false);
    loop {
        let mut tx = db.begin(&Ctx::default()).await?;
        let claimed = erasures::claim(&mut tx).await?;
        ensure!(erasures::claim(&mut tx).await?.is_none(), "two workers hold one erasure");
        tx.commit().await?;
        let Some(mut claimed) = claimed else { break };
        if claimed.erasure.details.place.pending.is_some() && !is_killed_between {
            // Killed when the store of scans has committed, and the database has not.
            steps::cut_pending(state, &claimed.erasure).await?;
            is_killed_between = true;
        } else {
            ensure!(steps::step(state, &mut claimed).await? != Stepped::Lost, "the lease is held");
        }
        // The lease of whoever was killed runs out.
        run(&api.made.db.location, &["UPDATE erasures SET lease_until = 0".to_owned()]).await?;
        first.get_or_insert(claimed);
    }
    ensure!(is_killed_between, "no worker was killed between both stores");
    let receipt = receipt(api, &path).await?;
    ensure!(receipt["rows"]["scans"] == 3, "each scan is counted once: {receipt}");
    let left = found(api, &MARKS).await?;
    ensure!(left.is_empty(), "{left:?}");
    scanned.profile_fits(0).await?;
    // The first worker was only asleep.
    let mut first = first.context("a worker")?;
    ensure!(steps::step(state, &mut first).await? == Stepped::Lost, "a stale lease writes");
    ensure!(self::receipt(api, &path).await? == receipt);
    Ok(())
}
