//! Which scans an assessment believes, and the status of an item (`control/README.md`, "Assessment").

use anyhow::{Context, Result};
use assessment::store::item_standings::{self, Kept};
use axum::http::Method;
use serde_json::{Value, json};
use shared::{standing::Risk, time::UnixMillis};
use tests::{db::Engine, product::PHONE};

use super::{
    Api, Application,
    authentication::{BERN, Brand, CITIES, HOUR, TOKYO, check, id, scanned, statuses, trigger, with},
};

/// The public key and the secret key of an application.
pub(super) async fn keys(api: &Api, thng: &str) -> Result<[String; 2]> {
    let Application { project, public, secret, .. } = api.application(json!({"name": "a"})).await?;
    let scopes = json!({"scopes": {"users": [], "projects": [project]}});
    let moved = api.put(&format!("/thngs/{thng}"), scopes).await?;
    assert!(moved.status.is_success(), "{moved:?}");
    Ok([public, secret])
}

async fn kept(api: &Api, thng: &str) -> Result<Kept> {
    let mut conn = api.made.app.core.db.read().await?;
    Ok(item_standings::load(&mut conn, api.made.account, thng.parse()?).await?)
}

/// 30 back-dated scans with chosen places, by the key that lies in a public page: they are kept, counted, and move nothing.
pub(super) async fn scans_by_a_public_key_change_no_verdict(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let now = api.made.app.core.clock.now().0;
    for hours_ago in [90, 80, 70, 60] {
        scanned(&api, &thng, now / HOUR - hours_ago, PHONE, Some(("Bern", "CH", BERN))).await?;
    }
    let [public, secret] = keys(&api, &thng).await?;
    // After all that is claimed and all that arrives.
    let later = now + HOUR;
    let ask = with(trigger(Some(&thng), BERN), "timestamp", json!(later));
    let before = brand.judge(ask.clone()).await?;
    assert_eq!(before["customFields"]["unverifiedScansCount"], 0);
    assert_eq!(statuses(&before), ["positive", "none", "none"], "{before}");
    for n in 0..30_i64 {
        let (latitude, longitude) = if n % 2 == 0 { TOKYO } else { (-33.87, 151.21) };
        let location = json!({"latitude": latitude, "longitude": longitude});
        let body = json!({"thng": thng, "timestamp": now - (50 - n) * HOUR, "location": location});
        let made =
            api.call_as(&public, Method::POST, "/actions/scans", Some(body)).await?.must_be(201)?.json();
        assert_eq!(
            (&made["scanSource"], &made["location"]["latitude"]),
            (&json!("public"), &json!(latitude))
        );
    }
    let after = brand.judge(ask.clone()).await?;
    assert_eq!(after["customFields"]["unverifiedScansCount"], 30, "{after}");
    assert_eq!(statuses(&after), statuses(&before), "{after}");
    let same = ["countriesCount", "regionsCount", "sensorSpreadDistance", "duplicatePoints"];
    for name in same {
        assert_eq!(after["customFields"][name], before["customFields"][name], "{name}");
    }
    assert!(check(&after, "duplicateChecks").1.contains("UNVERIFIED_SCANS: 30"), "{after}");
    // What a server says is believed: the same words by the secret key count.
    let body = json!({"thng": thng, "timestamp": now - 5 * HOUR,
        "location": {"latitude": TOKYO.0, "longitude": TOKYO.1}});
    let made = api.call_as(&secret, Method::POST, "/actions/scans", Some(body)).await?;
    assert_eq!((made.status.as_u16(), &made.json()["scanSource"]), (201, &json!("server")));
    let after = brand.judge(ask).await?;
    assert_eq!(after["customFields"]["countriesCount"], 2, "{after}");
    Ok(())
}

/// A server says whose scan it passes on, if an operator allowed its application to.
pub(super) async fn a_server_reports_the_scans_of_its_customers(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let app = api.application(json!({"name": "a"})).await?;
    let (project, uri, public, secret) = (&app.project, &*app.path, &*app.public, &*app.secret);
    let scopes = json!({"scopes": {"users": [], "projects": [project]}});
    assert_eq!(api.put(&format!("/thngs/{thng}"), scopes).await?.status, 200);
    let scan = |context: Value| json!({"thng": thng, "context": context});
    let customer = json!({"ipAddress": "203.0.113.7", "userAgent": PHONE, "language": "pt-BR"});
    let post =
        async |key: &str, body: Value| api.call_as(key, Method::POST, "/actions/scans", Some(body)).await;

    // Clients send back what they read: without the permission it is ignored, whatever it is.
    for (key, context) in [(secret, customer.clone()), (secret, json!(7)), (public, customer.clone())] {
        let made = post(key, scan(context)).await?;
        assert_eq!(made.status, 201, "{made:?}");
        assert!(made.json()["context"].get("ipAddress").is_none(), "{made:?}");
    }
    let allow = json!({"reportsContext": true});
    for key in [public, secret] {
        api.call_as(key, Method::PUT, uri, Some(allow.clone())).await?.must_be(403)?;
    }
    let allowed = api.put(uri, allow).await?;
    assert_eq!((allowed.status.as_u16(), &allowed.json()["reportsContext"]), (200, &json!(true)));

    let made = post(secret, scan(customer.clone())).await?;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    let context = &made["context"];
    assert_eq!(
        (&context["ipAddress"], &context["userAgent"], &context["language"]),
        (&customer["ipAddress"], &customer["userAgent"], &customer["language"])
    );
    assert_eq!((&context["city"], &context["countryCode"]), (&json!("Bern"), &json!("CH")), "{made}");
    assert_eq!((&made["scanSource"], &made["locationSource"]), (&json!("server"), &json!("geoIp")));
    let judged = brand.judge(json!({"id": id(&made), "thng": thng})).await?;
    let fields = &judged["customFields"];
    assert_eq!((&fields["countriesCount"], &fields["userAgentCount"]), (&json!(1), &json!(1)), "{judged}");
    // The public key of the same application is not the server's.
    let made = post(public, scan(customer.clone())).await?;
    assert!(made.status == 201 && made.json()["context"].get("ipAddress").is_none(), "{made:?}");

    let count =
        async || anyhow::Ok(api.get("/actions/scans?perPage=100").await?.json().as_array().map(Vec::len));
    let before = count().await?;
    for (body, fault) in [
        (scan(json!({"ipAddress": "203.0.113", "userAgent": PHONE})), "context.ipAddress: "),
        (scan(json!({"userAgent": PHONE, "language": "pt BR"})), "context.language must be one language tag"),
        (
            scan(json!({"ipAddress": "203.0.113.7", "countryCode": "US"})),
            "context.countryCode cannot be reported",
        ),
        (json!([scan(customer.clone()), scan(json!({}))]), "[1].context must have"),
    ] {
        let refused = post(secret, body).await?;
        assert!(refused.problem(400, 40001)[0].starts_with(fault), "{fault}");
    }
    assert_eq!(count().await?, before, "a refused request records nothing");
    Ok(())
}

/// A trigger by a public key: what it claims is shown, and neither incriminates nor clears.
pub(super) async fn a_trigger_by_a_public_key_is_not_believed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let [public, _] = keys(&api, &thng).await?;
    let uri = "/auth/evrythng/users?anonymous=true";
    let user = api.call_as(&public, Method::POST, uri, Some(json!({}))).await?.json();
    let user = user["evrythngApiKey"].as_str().context("key")?.to_owned();
    let ask = async |body: Value| -> Result<Value> {
        Ok(api.call_as(&user, Method::POST, "/authentication", Some(body)).await?.must_be(200)?.json())
    };
    let found = ask(trigger(Some(&thng), TOKYO)).await?;
    assert_eq!(statuses(&found), ["unknown", "none", "unknown"], "{found}");
    assert_eq!(found["location"]["latitude"], TOKYO.0, "what it claims is shown");
    assert_eq!(check(&found, "diversionChecks").0, "unknown");
    // Nor does it clear what the brand's own scan confirmed.
    let outside = brand.judge(trigger(Some(&thng), TOKYO)).await?;
    assert_eq!(statuses(&outside)[2], "confirmed");
    ask(with(trigger(Some(&thng), BERN), "timestamp", json!(200 * HOUR))).await?;
    let stood = kept(&api, &thng).await?.stood.context("standing")?;
    assert_eq!(stood.verdict.gray_market, Risk::Confirmed);
    assert_eq!(stood.at, Some(UnixMillis(100 * HOUR)));
    Ok(())
}

/// The standing is what the newest scan says, in whatever order the scans are assessed; points do not fall.
pub(super) async fn the_item_status_follows_the_newest_scan(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let at = |hour: i64, place| with(trigger(Some(&thng), place), "timestamp", json!(hour * HOUR));
    brand.judge(at(100, TOKYO)).await?;
    let newest = kept(&api, &thng).await?;
    // An older one, assessed later.
    assert_eq!(statuses(&brand.judge(at(50, BERN)).await?), ["positive", "none", "none"]);
    assert_eq!(kept(&api, &thng).await?.stood, newest.stood);
    // A newer one without a country.
    let nowhere = json!({"id": "UKXAGyEf8SQ5eTDmVgGpHqAa", "type": "scans", "locationSource": "unknown",
        "thng": thng, "timestamp": 110 * HOUR});
    assert_eq!(statuses(&brand.judge(nowhere).await?)[2], "unknown");
    assert_eq!(kept(&api, &thng).await?.stood.context("stood")?.verdict.gray_market, Risk::Confirmed);
    // A newer one that knows better.
    brand.judge(at(120, BERN)).await?;
    let stood = kept(&api, &thng).await?.stood.context("stood")?;
    assert_eq!((stood.verdict.gray_market, stood.at), (Risk::None, Some(UnixMillis(120 * HOUR))));
    Ok(())
}

/// 64 sessions of one town push the others out of the profile, and not out of the verdict.
pub(super) async fn greatest_points_are_kept_after_later_scans(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    for (n, place) in CITIES.iter().cycle().take(16).enumerate() {
        let phone = format!("Phone{}/1", ["A", "B", "C", "D"][n % 4]);
        scanned(&api, &thng, 10 + n as i64, &phone, Some(*place)).await?;
    }
    let at = |hour: i64| with(trigger(Some(&thng), BERN), "timestamp", json!(hour * HOUR));
    let found = brand.judge(at(30)).await?;
    assert_eq!(check(&found, "duplicateChecks").0, "true", "{found}");
    let peak = kept(&api, &thng).await?.peak.context("peak")?;
    assert_eq!(json!(peak.points), found["customFields"]["duplicatePoints"]);
    for hour in 40..110 {
        scanned(&api, &thng, hour, "PhoneA/1", Some(CITIES[0])).await?;
    }
    let found = brand.judge(at(120)).await?;
    let points = found["customFields"]["duplicatePoints"].as_u64().context("points")?;
    assert!(points < u64::from(peak.points), "the sessions abroad are out: {found}");
    let (matched, reason) = check(&found, "duplicateChecks");
    assert!(matched == "true" && reason.contains("since the scan"), "{reason}");
    assert_eq!(statuses(&found)[1], "suspected", "{found}");
    assert_eq!(kept(&api, &thng).await?.peak, Some(peak));
    Ok(())
}

/// "The action as recorded" is enough where the scan has no geography, and so is the id of a stored one.
pub(super) async fn the_action_as_recorded_may_have_no_location(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let scan = scanned(&api, &thng, 40, PHONE, None).await?;
    let recorded = api.get(&format!("/actions/implicitScans/{scan}")).await?.json();
    assert_eq!(recorded.get("location"), None, "{recorded}");
    for body in [recorded, json!({"id": scan})] {
        let result = brand.judge(body).await?;
        assert_eq!((&result["thng"], &result["locationSource"]), (&json!(thng), &json!("unknown")));
        assert_eq!(result["customFields"]["triggerAction"], json!(scan));
        assert_eq!(result.get("location"), None);
    }
    let errors = brand.ask(json!({"id": "UKXAGyEf8SQ5eTDmVgGpHqAa"})).await?.problem(400, 40001);
    assert_eq!(errors.len(), 3, "{errors:?}");
    Ok(())
}

/// Of a scan that somebody else made, the holder of a public key learns the verdict, and nothing of who scanned.
pub(super) async fn a_public_key_learns_nothing_from_the_scan_of_another(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let scan = scanned(&api, &thng, 40, PHONE, Some(("Tokyo", "JP", TOKYO))).await?;
    let [public, secret] = keys(&api, &thng).await?;
    let body = json!({"id": scan});
    let seen = api.call_as(&secret, Method::POST, "/authentication", Some(body.clone())).await?.json();
    assert_eq!(seen["customFields"]["triggerContext"]["city"], "Tokyo", "{seen}");
    assert_eq!(seen["location"]["latitude"], json!(TOKYO.0), "{seen}");
    let uri = "/auth/evrythng/users?anonymous=true";
    let user = api.call_as(&public, Method::POST, uri, None).await?.json();
    let user = user["evrythngApiKey"].as_str().context("key")?;
    let answer = api.call_as(user, Method::POST, "/authentication", Some(body)).await?.must_be(200)?.json();
    for (name, value) in answer["customFields"]["triggerContext"].as_object().context("context")? {
        assert_eq!(value, "unknown", "{name}");
    }
    assert_eq!(answer.get("location"), None, "{answer}");
    assert_eq!(answer["thng"], json!(thng));
    assert_eq!(answer["customFields"]["authenticationStatus"], seen["customFields"]["authenticationStatus"]);
    // Operators read the whole of it.
    let kept = format!("/actions/authenticationResults/{}", id(&answer));
    let kept = api.get(&kept).await?.json();
    assert_eq!(kept["customFields"]["triggerContext"]["city"], "Tokyo", "{kept}");
    Ok(())
}

crate::on_both_engines!(
    a_public_key_learns_nothing_from_the_scan_of_another,
    scans_by_a_public_key_change_no_verdict,
    a_server_reports_the_scans_of_its_customers,
    a_trigger_by_a_public_key_is_not_believed,
    the_item_status_follows_the_newest_scan,
    greatest_points_are_kept_after_later_scans,
    the_action_as_recorded_may_have_no_location,
);
