//! What actions by the API keep of who made them, under each setting of the account.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, product::PHONE};

use super::{
    Api,
    authentication::{Brand, id, statuses, trigger},
};

const IP: &str = "203.0.113.77";
const POINT: (f64, f64) = (46.948_127, 7.447_456);

crate::on_both_engines!(actions_are_cut_to_what_the_account_keeps, verdicts_hold_under_each_setting);

async fn keep(api: &Api, kept: &str) -> Result<()> {
    let uri = format!("/accounts/{}", api.made.account);
    let answer = api.put(&uri, json!({"personalData": kept})).await?;
    ensure!(answer.status == 200 && answer.json()["personalData"] == kept, "{answer:?}");
    Ok(())
}

/// Sends a body from the address of a phone.
async fn post(api: &Api, key: &str, uri: &str, body: &Value) -> Result<Value> {
    let headers = [("user-agent", PHONE)];
    let answer = api.call_from(IP, &headers, (key, Method::POST, uri), Some(body.clone())).await?;
    ensure!(answer.status.is_success(), "{uri}: {answer:?}");
    Ok(answer.json())
}

/// All rows but those of the audit trail, which is about operators.
async fn rows(api: &Api) -> Result<Vec<String>> {
    let tables = api.fingerprint().await?.into_iter().filter(|(table, _)| !table.starts_with("audit"));
    Ok(tables.flat_map(|(_, rows)| rows).collect())
}

async fn actions_are_cut_to_what_the_account_keeps(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let app = api.application(json!({"name": "a", "reportsContext": true})).await?;
    let (project, public, secret) = (&*app.project, &*app.public, &*app.secret);
    let users = "/auth/evrythng/users?anonymous=true";
    let user = post(&api, public, users, &json!({"anonymous": true})).await?;
    let user = user["evrythngApiKey"].as_str().context("user's key")?;
    let cut = ("203.0.113.0", "Safari/17 (iPhone/17)", (46.95, 7.45));
    for (number, (kept, expected)) in
        [("full", Some((IP, PHONE, POINT))), ("truncated", Some(cut)), ("none", None)].into_iter().enumerate()
    {
        keep(&api, kept).await?;
        let thng = brand.thng(&format!("S{number}")).await?;
        let scopes = json!({"scopes": {"users": [], "projects": [project]}});
        ensure!(api.put(&format!("/thngs/{thng}"), scopes).await?.status == 200);
        let has_client = |action: &Value| {
            let context = &action["context"];
            let client = (context["ipAddress"].as_str(), context["userAgent"].as_str());
            client == (expected.map(|one| one.0), expected.map(|one| one.1))
                && (&context["city"], &context["countryCode"]) == (&json!("Bern"), &json!("CH"))
                && context["userAgentName"] == "Safari"
        };
        let at = |action: &Value| {
            action["location"]["latitude"].as_f64().zip(action["location"]["longitude"].as_f64())
        };
        let point = json!({"latitude": POINT.0, "longitude": POINT.1});

        let here = post(&api, &api.key, "/actions/scans", &json!({"thng": thng, "location": point})).await?;
        ensure!(has_client(&here) && at(&here) == expected.map(|one| one.2), "{kept}: {here}");
        let source = if expected.is_some() { "sensor" } else { "unknown" };
        ensure!(here["locationSource"] == source, "{kept}: {here}");
        ensure!(here.get("location").is_some() == expected.is_some(), "{kept}: {here}");
        let by_address = post(&api, &api.key, "/actions/scans", &json!({"thng": thng})).await?;
        let source = if expected.is_some() { "geoIp" } else { "unknown" };
        ensure!(has_client(&by_address) && by_address["locationSource"] == source, "{kept}: {by_address}");
        let at_place = json!({"thng": thng, "location": {"place": brand.place}});
        let at_place = post(&api, &api.key, "/actions/checkins", &at_place).await?;
        ensure!(has_client(&at_place) && at(&at_place) == Some((47.5, 8.5)), "{kept}: {at_place}");

        let customer = json!({"thng": thng, "context": {"ipAddress": IP, "userAgent": PHONE}});
        let reported = api.call_as(secret, Method::POST, "/actions/scans", Some(customer)).await?.json();
        ensure!(has_client(&reported), "{kept}: {reported}");

        let step = json!({"location": {"place": brand.place, "position": {"type": "Point", "coordinates": [POINT.1, POINT.0]}},
            "occurredAt": "2025-10-09T08:00:00Z", "factoryMetadata": {"factory": "F1"}});
        let uri = format!("/thngs/{thng}/actions/decommissions");
        let step = post(&api, &api.key, &uri, &step).await?;
        ensure!(has_client(&step) && at(&step) == expected.map(|one| one.2), "{kept}: {step}");
        ensure!(
            step["location"]["place"] == brand.place.as_str(),
            "the place of a step stays: {kept}: {step}"
        );

        // A result of what a user asks for is stored with what is kept of the user.
        let asked = post(&api, user, "/authentication", &trigger(Some(&thng), POINT)).await?;
        let result = api.get(&format!("/actions/authenticationResults/{}", id(&asked))).await?.json();
        let agent = &result["customFields"]["triggerContext"]["userAgent"];
        ensure!(*agent == expected.map_or("unknown", |one| one.1), "{kept}: {result}");
        ensure!(result["customFields"]["triggerContext"]["city"] == "Bern", "{kept}: {result}");
        ensure!(at(&result) == expected.map(|one| one.2), "{kept}: {result}");

        // Nothing of it is stored elsewhere, such as in kept events.
        if expected.is_none() {
            let before = rows(&api).await?;
            let exact = [IP, "AppleWebKit", "46.948127"];
            let count = |rows: &[String], text: &str| rows.iter().filter(|row| row.contains(text)).count();
            let counts = exact.map(|text| count(&before, text));
            post(&api, &api.key, "/actions/scans", &json!({"thng": thng, "location": point})).await?;
            post(&api, user, "/authentication", &trigger(Some(&thng), POINT)).await?;
            let after = rows(&api).await?;
            ensure!(after.len() > before.len() && exact.map(|text| count(&after, text)) == counts, "{kept}");
        }
    }
    Ok(())
}

/// The same journey of a code: at home, then far away in a market that is not permitted.
async fn verdicts_hold_under_each_setting(engine: Engine) -> Result<()> {
    for kept in ["full", "truncated", "none"] {
        let api = Api::new(engine).await?;
        let brand = Brand::new(&api).await?;
        keep(&api, kept).await?;
        let thng = brand.thng("A").await?;
        post(&api, &api.key, "/actions/scans", &json!({"thng": thng})).await?;
        // The sensor's word of the request is judged as it came.
        let home = brand.judge(trigger(Some(&thng), POINT)).await?;
        ensure!(statuses(&home) == ["positive", "none", "none"], "{kept}: {home}");
        let other = brand.thng("B").await?;
        let away = brand.judge(trigger(Some(&other), (35.681_236, 139.767_125))).await?;
        ensure!(statuses(&away) == ["negative", "none", "confirmed"], "{kept}: {away}");
        let latitude = &away["location"]["latitude"];
        let expected = match kept {
            "full" => json!(35.681_236),
            "truncated" => json!(35.68),
            _ => json!(null),
        };
        ensure!(*latitude == expected, "{kept}: {away}");
    }
    Ok(())
}
