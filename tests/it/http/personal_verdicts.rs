//! Assessments of stored scans by edges, under each setting of the account for personal data.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use control::worker::ingest_scans::ingest;
use serde_json::{Value, json};
use shared::{geo::CityDatabase, wire::scan::ScanRecord};
use tests::{
    db::{Engine, TestApp},
    mmdb,
};

use super::{
    Api, Application,
    authentication::{BERN, Brand, HOUR, id, statuses, trigger, with},
};
use crate::store::scans::{batch, record};

crate::on_both_engines!(
    a_copy_is_found_under_truncated_as_under_full,
    phones_of_two_models_are_two_devices,
    a_change_of_the_setting_makes_no_phone_a_new_device,
    a_result_repeats_no_more_than_the_account_keeps_now,
    a_neighbour_in_the_network_is_not_the_owner_of_a_scan,
    no_figure_tells_an_exact_point,
);

/// Some days before the clock of the tests begins.
const BEGIN: i64 = 1_760_000_000_000 - 200 * HOUR;

/// Each city has a network.
const CITIES: [(&str, &str, &str, f64, f64); 4] = [
    ("203.0.113.0/24", "Bern", "CH", 46.948_125, 7.447_5),
    ("192.0.2.0/24", "Lima", "PE", -12.051_234, -77.041_234),
    ("198.51.100.0/24", "Tokyo", "JP", 35.681_234, 139.691_234),
    ("100.64.0.0/24", "Sydney", "AU", -33.871_234, 151.211_234),
];

fn model(name: &str) -> String {
    format!(
        "Mozilla/5.0 (Linux; Android 14; {name} Build/UP1A.231005.007) AppleWebKit/537.36 (KHTML, like Gecko) \
         Chrome/126.0.6478.122 Mobile Safari/537.36"
    )
}

/// An item with a link, and the scans of edges so far.
struct Scanned {
    api: Api,
    thng: String,
    scans: u64,
}

impl Scanned {
    async fn new(engine: Engine, kept: &str) -> Result<Self> {
        let cities = CITIES.map(|(network, city, country, latitude, longitude)| {
            (
                network,
                json!({"city": city, "state1": city, "country_code": country, "latitude": latitude,
                "longitude": longitude}),
            )
        });
        let geo = CityDatabase::parse(mmdb::database(6, &cities))?;
        let made = TestApp::with(engine, |parts| parts.geo_ip = Some(std::sync::Arc::new(geo))).await?;
        let api = Api::over(made).await?;
        let thng = Brand::new(&api).await?.thng("A").await?;
        let link = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "A"});
        // Without `Accept` the answer is the image of its code.
        api.post("/redirections", link).await?.must_be(200)?;
        let new = Self { api, thng, scans: 0 };
        new.keep(kept).await?;
        Ok(new)
    }

    async fn keep(&self, kept: &str) -> Result<()> {
        let uri = format!("/accounts/{}", self.api.made.account);
        self.api.put(&uri, json!({"personalData": kept})).await?.must_be(200)?;
        Ok(())
    }

    /// A scan at an hour by a phone of a model; gives its id.
    async fn scan(&mut self, hour: i64, ip: &str, model_name: &str) -> Result<String> {
        self.scan_by(hour, ip, &model(model_name)).await
    }

    async fn scan_by(&mut self, hour: i64, ip: &str, agent: &str) -> Result<String> {
        let record = ScanRecord { ip: ip.parse()?, ..record("A", agent, BEGIN + hour * HOUR) };
        ingest(&self.api.made.app, &batch(1, self.scans, &[record])).await?;
        self.scans += 1;
        let uri = format!("/thngs/{}/actions/implicitScans?perPage=1", self.thng);
        let found = self.api.get(&uri).await?.json();
        Ok(found[0]["id"].as_str().context("scan")?.to_owned())
    }

    async fn assess(&self, scan: &str) -> Result<Value> {
        Ok(self.api.post("/authentication", json!({"id": scan})).await?.must_be(200)?.json())
    }

    /// The statuses and points of a result, which a replay must find too.
    async fn judged(&self, scan: &str) -> Result<Value> {
        let result = self.assess(scan).await?;
        let live =
            json!({"statuses": statuses(&result), "points": result["customFields"]["duplicatePoints"]});
        let answer = self.api.post("/authentication/replay", json!({"thng": self.thng})).await?;
        let replayed = answer.json();
        ensure!(replayed["profileMatches"] == true, "{replayed}");
        let again = replayed["results"]
            .as_array()
            .context("results")?
            .iter()
            .find(|one| one["triggerAction"] == scan);
        let again = &again.context("the scan is replayed")?["current"];
        let statuses =
            ["authenticationStatus", "counterfeitStatus", "grayMarketStatus"].map(|name| &again[name]);
        let again = json!({"statuses": statuses, "points": again["points"]});
        ensure!(live == again, "live {live}, replayed {again}");
        Ok(live)
    }

    async fn devices(&self, scan: &str) -> Result<Value> {
        self.judged(scan).await?;
        Ok(self.assess(scan).await?["customFields"]["userAgentCount"].clone())
    }
}

/// Phones with one browser, of four models, each in a city of its own.
async fn copied(scanned: &mut Scanned) -> Result<String> {
    let mut last = String::new();
    for n in 0..16_i64 {
        let network = CITIES[n as usize % 4].0.rsplit_once('.').context("network")?.0;
        let name = ["Pixel 6", "Pixel 7", "Pixel 8", "SM-S918B"][n as usize % 4];
        last = scanned.scan(2 * n, &format!("{network}.{}", 10 + n), name).await?;
    }
    Ok(last)
}

async fn a_copy_is_found_under_truncated_as_under_full(engine: Engine) -> Result<()> {
    let mut found = Vec::new();
    for kept in ["full", "truncated", "none"] {
        let mut scanned = Scanned::new(engine, kept).await?;
        let last = copied(&mut scanned).await?;
        let judged = scanned.judged(&last).await?;
        ensure!(judged["statuses"][1] != "none" || kept == "none", "{kept}: {judged}");
        let api = &scanned.api;
        let all =
            api.get(&format!("/thngs/{}/actions/implicitScans?context=true", scanned.thng)).await?.json();
        let export = api.get("/actions/implicitScans/export").await?;
        let lines = String::from_utf8(export.bytes.clone())?;
        ensure!(lines.contains("userAgentName"), "the export has contexts: {export:?}");
        for text in [all.to_string(), lines] {
            ensure!(!text.contains("\"device\""), "no answer has the device: {text}");
            ensure!(text.contains("Pixel 8") == (kept == "full"), "{kept}: {text}");
        }
        let filter = api.get("/actions/implicitScans?filter=context.device=0123456789abcdef").await?;
        ensure!(filter.status == 400, "no filter asks for the device: {filter:?}");
        found.push(judged);
    }
    ensure!(found[0] == found[1], "{found:?}");
    Ok(())
}

async fn phones_of_two_models_are_two_devices(engine: Engine) -> Result<()> {
    for (kept, devices) in [("full", 2), ("truncated", 2), ("none", 1)] {
        let mut scanned = Scanned::new(engine, kept).await?;
        scanned.scan(1, "203.0.113.7", "Pixel 8").await?;
        let last = scanned.scan(2, "203.0.113.7", "Pixel 6").await?;
        ensure!(scanned.devices(&last).await? == devices, "{kept}");
    }
    Ok(())
}

async fn a_change_of_the_setting_makes_no_phone_a_new_device(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine, "full").await?;
    for (n, kept) in ["full", "truncated", "full", "truncated"].into_iter().enumerate() {
        scanned.keep(kept).await?;
        let scan = scanned.scan(1 + n as i64, "203.0.113.7", "Pixel 8").await?;
        ensure!(scanned.devices(&scan).await? == 1, "{n}: {kept}");
    }
    // The names alone are another device.
    scanned.keep("none").await?;
    let scan = scanned.scan(9, "203.0.113.7", "Pixel 8").await?;
    ensure!(scanned.devices(&scan).await? == 2);
    Ok(())
}

async fn a_result_repeats_no_more_than_the_account_keeps_now(engine: Engine) -> Result<()> {
    let whole = model("Pixel 8");
    let reduced = "Chrome/126 (Android/14)";
    let mut scanned = Scanned::new(engine, "full").await?;
    let old = scanned.scan(1, "203.0.113.7", "Pixel 8").await?;
    scanned.keep("truncated").await?;
    let new = scanned.scan(2, "203.0.113.7", "Pixel 8").await?;
    for (kept, of_old, of_new) in
        [("full", whole.as_str(), reduced), ("truncated", reduced, reduced), ("none", "unknown", "unknown")]
    {
        scanned.keep(kept).await?;
        for (scan, expected) in [(&old, of_old), (&new, of_new)] {
            let answer = scanned.assess(scan).await?;
            let uri = format!("/actions/authenticationResults/{}", id(&answer));
            let stored = scanned.api.get(&uri).await?.json();
            for result in [answer, stored] {
                let agent = &result["customFields"]["triggerContext"]["userAgent"];
                ensure!(*agent == expected, "{kept}: {result}");
            }
        }
    }
    Ok(())
}

/// Asks as an application user, from an address and with a user agent.
async fn ask(api: &Api, key: &str, (ip, agent): (&str, &str), uri: &str, body: &Value) -> Result<Value> {
    let headers = [("user-agent", agent)];
    let answer = api.call_from(ip, &headers, (key, Method::POST, uri), Some(body.clone())).await?;
    ensure!(answer.status.is_success(), "{uri}: {answer:?}");
    Ok(answer.json())
}

async fn a_neighbour_in_the_network_is_not_the_owner_of_a_scan(engine: Engine) -> Result<()> {
    let (own, other) = (model("Pixel 8"), model("Pixel 6"));
    for kept in ["full", "truncated", "none"] {
        let mut scanned = Scanned::new(engine, kept).await?;
        let scan = scanned.scan_by(1, "203.0.113.7", &own).await?;
        let api = &scanned.api;
        let Application { project, public, .. } = api.application(json!({"name": "a"})).await?;
        let (uri, anonymous) = ("/auth/evrythng/users?anonymous=true", json!({"anonymous": true}));
        let user = ask(api, &public, ("192.0.2.99", &own), uri, &anonymous).await?;
        let user = user["evrythngApiKey"].as_str().context("user's key")?;
        let scopes = json!({"scopes": {"users": [], "projects": [project]}});
        let uri = format!("/thngs/{}", scanned.thng);
        ensure!(api.put(&uri, scopes).await?.status == 200);
        for (ip, agent, is_shown) in [
            ("203.0.113.7", &own, kept != "none"),
            // The address of the network itself belongs to nobody.
            ("203.0.113.0", &other, false),
            ("203.0.113.8", &other, false),
            ("192.0.2.7", &own, false),
            // What an account keeps of both is the same.
            ("203.0.113.8", &own, kept == "truncated"),
        ] {
            let shown = ask(api, user, (ip, agent), "/authentication", &json!({"id": scan})).await?;
            let city = &shown["customFields"]["triggerContext"]["city"];
            ensure!((*city == "Bern") == is_shown, "{kept} {ip} {agent}: {shown}");
        }
        // Whoever asked under a setting with networks is nobody's owner once they are gone.
        if kept == "truncated" {
            scanned.keep("none").await?;
            let api = &scanned.api;
            let shown =
                ask(api, user, ("203.0.113.7", &own), "/authentication", &json!({"id": scan})).await?;
            ensure!(shown["customFields"]["triggerContext"]["city"] == "unknown", "{shown}");
        }
    }
    Ok(())
}

/// Two points that are the same after rounding give the same figures.
async fn no_figure_tells_an_exact_point(engine: Engine) -> Result<()> {
    for kept in ["full", "truncated", "none"] {
        let scanned = Scanned::new(engine, kept).await?;
        let api = &scanned.api;
        let Application { project, secret, .. } = api.application(json!({"name": "a"})).await?;
        let scopes = json!({"scopes": {"users": [], "projects": [project]}});
        let uri = format!("/thngs/{}", scanned.thng);
        ensure!(api.put(&uri, scopes).await?.status == 200);
        let at = json!({"thng": scanned.thng, "timestamp": 50 * HOUR,
            "location": {"latitude": BERN.0, "longitude": BERN.1}});
        api.call_as(&secret, Method::POST, "/actions/scans", Some(at)).await?.must_be(201)?;
        let mut figures = Vec::new();
        for latitude in [46.981_234, 46.984_912] {
            let body =
                with(trigger(Some(&scanned.thng), (latitude, 7.451_234)), "timestamp", json!(99 * HOUR));
            let answer = api.post("/authentication", body).await?.must_be(200)?;
            let fields = answer.json()["customFields"].take();
            figures.push((
                fields["sensorSpreadDistance"].clone(),
                fields["duplicateProfile"]["sensorBBSize"].clone(),
            ));
        }
        let spread = figures[0].0.as_f64().context("figure")?;
        ensure!((figures[0] == figures[1]) == (kept != "full"), "{kept}: {figures:?}");
        ensure!((spread > 1.0) == (kept != "none"), "{kept}: {figures:?}");
        let tables = api.fingerprint().await?;
        let is_exact = |row: &String| {
            ["46.98123", "46981234", "46.98491", "46984912"].iter().any(|text| row.contains(text))
        };
        let exact: Vec<&String> = tables.values().flatten().filter(|row| is_exact(row)).collect();
        ensure!(exact.is_empty() == (kept != "full"), "{kept}: {exact:?}");
    }
    Ok(())
}
