//! Conditions on what a request says, over the real product: a preview says what an edge does, and faults are named at once.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    kills::until,
    product::{Options, PHONE, Product},
};

use crate::{
    availability::now,
    preview::{FIREFOX, put, scan},
};

crate::on_both_engines!(
    a_preview_of_conditions_says_what_an_edge_answers,
    every_fault_of_a_condition_is_named_at_once,
    a_scan_names_the_side_of_its_visitor,
);

const OWN: &str = "https://example.com/own";
const TABLET: &str = "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
    Version/17.5 Mobile/15E148 Safari/604.1";
const DAY_MS: i64 = 86_400_000;

/// Rules of which each decides for some request of the test; the last two divide the rest.
fn rules() -> Value {
    let to = |condition: &str, page: &str| json!({"match": condition, "redirectUrl": format!("https://example.com/{page}")});
    json!([
        to("network=203.0.113.0/25|2001:db8::/32&query.ref=poster", "network"),
        to("region~North&device=phone&languages.de>=0.5&asNumber=64512", "region"),
        to("refererHost=example.org|query.note=a b", "referer"),
        to("device=tablet", "tablet"),
        to("languages=fr&languages.fr<1&percentage.french<50", "french"),
        to("percentage<50", "first"),
        to("percentage>=50&weekday.Asia/Tokyo>=1&hour.Europe/Berlin<24", "second"),
    ])
}

/// What an edge answers, and what a preview says, on one day of UTC: percentages are of a day.
async fn both(
    product: &Product,
    sent: &[(&str, &str)],
    query: &str,
    asked: &Value,
) -> Result<[[Value; 3]; 2]> {
    loop {
        let day = now()?.div_euclid(DAY_MS);
        let answered = scan(product, "SHOE", sent, query).await?;
        let (status, said) =
            product.call(Method::POST, "/redirections/SHOE/preview", Some(asked.clone())).await?;
        ensure!(status == StatusCode::OK, "{status}: {said}");
        if now()?.div_euclid(DAY_MS) == day {
            return Ok([answered, ["status", "location", "code"].map(|name| said[name].clone())]);
        }
    }
}

async fn a_preview_of_conditions_says_what_an_edge_answers(engine: Engine) -> Result<()> {
    let options = Options { engine, unlimited: true, cities: true, ..Options::default() };
    let product = Product::start(options).await?;
    let id = product.create_product().await?;
    product.create_redirection(&id, OWN, Some("SHOE")).await?;
    put(&product, "/redirector", json!({"rules": rules()})).await?;
    let mut pages = BTreeSet::new();
    for (address, place) in [
        (
            "203.0.113.7",
            json!({"country": "DE", "city": "Köln", "region": "North Rhine-Westphalia", "asNumber": 64512}),
        ),
        ("198.51.100.7", json!({"country": "FR"})),
        ("2001:db8::7", json!({})),
        ("192.0.2.7", json!({})),
    ] {
        for agent in [PHONE, FIREFOX, TABLET, ""] {
            for language in ["de;q=0.5,en", "en,fr;q=0.3", "fr", ""] {
                for referer in ["https://www.example.org:8443/x?y", "https://example.org.evil.example/", ""] {
                    for query in ["", "?ref=poster", "?ref=post&note=a+b", "?note=a%20b"] {
                        let mut asked = place.clone();
                        asked["address"] = json!(address);
                        let mut sent = vec![("x-forwarded-for", address)];
                        for (name, member, value) in [
                            ("user-agent", "userAgent", agent),
                            ("accept-language", "acceptLanguage", language),
                            ("referer", "referer", referer),
                        ] {
                            if !value.is_empty() {
                                sent.push((name, value));
                                asked[member] = json!(value);
                            }
                        }
                        if let Some(query) = query.strip_prefix('?') {
                            asked["query"] = json!(query);
                        }
                        let [answered, said] = both(&product, &sent, query, &asked).await?;
                        ensure!(answered == said, "{asked}: {answered:?}, not {said:?}");
                        let location = answered[1].as_str().context("location")?;
                        pages.extend(location.rsplit('/').next().map(str::to_owned));
                    }
                }
            }
        }
    }
    // Which side a visitor is on depends on the day; of the others each page was reached.
    for page in ["network", "region", "referer", "tablet"] {
        ensure!(pages.contains(page), "{page} in {pages:?}");
    }
    ensure!(!pages.contains("own"), "the two sides leave nobody out: {pages:?}");
    // A preview may name the place instead.
    for (percentage, page) in [(0.0, "first"), (49.99, "first"), (50.0, "second"), (99.99, "second")] {
        let asked = Some(json!({"percentage": percentage}));
        let (_, said) = product.call(Method::POST, "/redirections/SHOE/preview", asked).await?;
        ensure!(said["location"] == format!("https://example.com/{page}"), "{said}");
    }
    Ok(())
}

async fn every_fault_of_a_condition_is_named_at_once(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let rules = json!([
        {"match": "device=phone&query.ref=a|b&network=10.0.0.0/8"},
        {"match": "device=watch&network=x&hour.Nowhere=1&query.access_token=k", "redirectUrl": "ftp://x"},
        {"match": "percentage<101"},
    ]);
    let body = product.must_answer(400, Method::PUT, "/redirector", Some(json!({"rules": rules}))).await?;
    let faults = body["errors"].as_array().context("errors")?;
    let expected = [
        "rules[1].match: the field device is one of phone, tablet, desktop, robot.",
        "rules[1].match: the field network is compared with an address or a network, such as 192.0.2.0/24.",
        "rules[1].match: there is no time zone Nowhere; write a name such as Europe/Berlin.",
        "rules[1].match: the field query.access_token cannot be asked for",
        "rules[1].redirectUrl must be an absolute",
        "rules[2].match: the field percentage is compared with a number from 0 to 100.",
    ];
    ensure!(faults.len() == expected.len(), "{body}");
    for (fault, expected) in faults.iter().zip(expected) {
        ensure!(fault.as_str().is_some_and(|fault| fault.starts_with(expected)), "{fault}, not {expected}");
    }
    Ok(())
}

async fn a_scan_names_the_side_of_its_visitor(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let thng = crate::preview::create(&product, "/thngs", json!({"name": "Left shoe"})).await?;
    product.create_redirection(&thng, OWN, Some("SHOE")).await?;
    let rules = json!([
        {"name": "First", "match": "percentage<50", "redirectUrl": "https://example.com/first"},
        {"name": "Second", "match": "percentage>=50", "redirectUrl": "https://example.com/second"},
    ]);
    put(&product, "/redirector", json!({"rules": rules})).await?;
    let [_, location, _] = scan(&product, "SHOE", &[("user-agent", PHONE)], "").await?;
    let path = format!("/thngs/{thng}/actions/implicitScans");
    let actions = until(&product, &path, |actions| *actions != json!([])).await?;
    let reaction = &actions[0]["reactions"][0];
    ensure!(reaction["redirectUrl"] == location, "{reaction}, not {location}");
    let name = if location == "https://example.com/first" { "First" } else { "Second" };
    ensure!(reaction["rule"]["name"] == name, "{reaction}");
    Ok(())
}
