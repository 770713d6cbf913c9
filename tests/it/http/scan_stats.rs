//! Statistics of scans: what they count, who sees them, and what they cannot answer.

mod access;
mod backfill;
mod killed;
mod live;
mod model;
mod project_counts;
mod removal;
mod rules;
mod unknown;
mod year;

use anyhow::{Result, ensure};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use control::worker::ingest_scans::ingest;
use serde_json::{Value, json};
use shared::wire::scan::{ScanBatch, ScanRecord};
use tests::{
    db::{Engine, TestApp},
    json::text,
    mmdb,
    product::PHONE,
};

use super::{Answer, Api};
use crate::store::scans;

const ANDROID: &str = "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/126.0.0.0 Mobile Safari/537.36";
const DESKTOP: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0";
const ROBOT: &str = "Googlebot/2.1 (+http://www.google.com/bot.html)";

/// An hour of UTC: 2025-10-09 08:00, in which the clock of the tests begins.
const HOUR: i64 = 60 * 60 * 1_000;
const NOW: i64 = 1_760_000_000_000 / HOUR * HOUR;

/// An API whose geography knows Switzerland, Germany and the United States (RFC 5737).
async fn api(engine: Engine) -> Result<Api> {
    let place = |city: &str, region: &str, country: &str| json!({"city": city, "state1": region, "country_code": country, "latitude": 46.5, "longitude": 7.5});
    let networks = [
        ("203.0.113.0/25", place("Bern", "Bern", "CH")),
        ("203.0.113.128/25", place("Munich", "Bavaria", "DE")),
        ("198.51.100.0/24", place("Austin", "Texas", "US")),
    ];
    let geo = shared::geo::CityDatabase::parse(mmdb::database(6, &networks))?;
    let made = TestApp::with(engine, |parts| parts.geo_ip = Some(std::sync::Arc::new(geo))).await?;
    Api::over(made).await
}

/// A product with a link to it; gives the id of the product.
async fn linked(api: &Api, short_id: &str, projects: &[&str]) -> Result<String> {
    linked_as(api, &api.key, "tn.gg", short_id, projects).await
}

async fn linked_as(api: &Api, key: &str, domain: &str, short_id: &str, projects: &[&str]) -> Result<String> {
    let scopes = json!({"users": [], "projects": projects});
    let product = json!({"name": short_id, "scopes": scopes});
    let made = api.call_as(key, Method::POST, "/products", Some(product)).await?.must_be(201)?;
    let product = text(&made.json(), "id")?;
    link_as(api, key, (domain, short_id), &product, projects).await?;
    Ok(product)
}

/// A link to a product or a Thng.
async fn link_as(
    api: &Api,
    key: &str,
    (domain, short_id): (&str, &str),
    platform_id: &str,
    projects: &[&str],
) -> Result<()> {
    let scopes = json!({"users": [], "projects": projects});
    let link = json!({"platformId": platform_id, "shortDomain": domain, "shortId": short_id,
        "defaultRedirectUrl": "https://example.com/", "scopes": scopes});
    let request = Request::post("/redirections")
        .header(header::HOST, "api.example:8080")
        .header(header::AUTHORIZATION, key)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(link.to_string()))?;
    let made = api.send(request).await?;
    ensure!(made.status == 201, "{made:?}");
    Ok(())
}

/// A scan of a link.
fn scan(short_id: &str, at: i64, ip: &str, agent: &str) -> ScanRecord {
    ScanRecord { ip: ip.parse().unwrap(), ..scans::record(short_id, agent, at) }
}

/// Hands over scans as one batch of an edge.
async fn take(api: &Api, first_seq: u64, records: &[ScanRecord]) -> Result<()> {
    let batch = ScanBatch { edge: "e1".into(), boot: 1, first_seq, records: records.to_vec() };
    ingest(&api.made.app, &batch).await?;
    Ok(())
}

/// The answer to a question.
async fn ask(api: &Api, query: &str) -> Result<Value> {
    ask_as(api, &api.key, query).await
}

async fn ask_as(api: &Api, key: &str, query: &str) -> Result<Value> {
    let answer = api.call_as(key, Method::GET, &format!("/scans/stats?{query}"), None).await?;
    ensure!(answer.status == 200, "{query}: {answer:?}");
    Ok(answer.json())
}

/// The rows as texts: the values of these members, one behind the other.
fn rows(answer: &Value, members: &[&str]) -> Vec<String> {
    let one = |row: &Value| members.iter().map(|name| row[*name].to_string()).collect::<Vec<_>>().join(" ");
    answer["rows"].as_array().unwrap().iter().map(one).collect()
}

async fn scans_are_counted_by_each_dimension(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let (one, two) = (linked(&api, "ONE", &[]).await?, linked(&api, "TWO", &[]).await?);
    let german = ScanRecord { language: Some("de-CH".into()), ..scan("ONE", NOW, "203.0.113.1", PHONE) };
    let sum =
        ScanRecord { count: 5.try_into().ok(), ip: [0, 0, 0, 0].into(), ..scan("TWO", NOW, "0.0.0.0", "") };
    take(
        &api,
        0,
        &[
            german.clone(),
            german,
            scan("ONE", NOW, "203.0.113.200", ANDROID),
            scan("TWO", NOW, "198.51.100.1", DESKTOP),
            scan("TWO", NOW, "192.0.2.1", ROBOT),
            sum,
            scan("NOWHERE", NOW, "203.0.113.1", PHONE),
        ],
    )
    .await?;
    let counts = ["scans", "newDevices", "robots"];
    let cases: [(&str, &[&str], Vec<String>); 12] = [
        ("", &[], vec!["9 3 1".to_owned()]),
        (
            "groupBy=country",
            &["country"],
            vec![r#""CH" 2 1 0"#.into(), r#""DE" 1 1 0"#.into(), r#""US" 1 1 0"#.into(), "null 5 0 1".into()],
        ),
        ("groupBy=region&filter=country=DE", &["country", "region"], vec![r#""DE" "Bavaria" 1 1 0"#.into()]),
        (
            "groupBy=city&filter=country=CH|DE",
            &["city"],
            vec![r#""Bern" 2 1 0"#.into(), r#""Munich" 1 1 0"#.into()],
        ),
        (
            "groupBy=device",
            &["device"],
            vec![r#"null 5 0 1"#.into(), r#""phone" 3 2 0"#.into(), r#""desktop" 1 1 0"#.into()],
        ),
        ("groupBy=system&filter=system=Android", &["system"], vec![r#""Android" 1 1 0"#.into()]),
        ("groupBy=language", &["language"], vec!["null 7 2 1".into(), r#""de" 2 1 0"#.into()]),
        ("groupBy=verdict", &["verdict"], vec!["null 9 3 1".into()]),
        ("groupBy=product", &["product"], vec![format!("{:?} 6 1 1", two), format!("{:?} 3 2 0", one)]),
        ("groupBy=link", &["link"], vec![r#""tn.gg/TWO" 6 1 1"#.into(), r#""tn.gg/ONE" 3 2 0"#.into()]),
        ("filter=link=tn.gg/ONE", &[], vec!["3 2 0".into()]),
        (
            "groupBy=product,country&filter=country=DE|US",
            &["product", "country"],
            vec![format!("{one:?} \"DE\" 1 1 0"), format!("{two:?} \"US\" 1 1 0")],
        ),
    ];
    for (query, members, expected) in cases {
        let members: Vec<&str> = members.iter().copied().chain(counts).collect();
        let mut found = rows(&ask(&api, query).await?, &members);
        let mut expected: Vec<String> = expected;
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{query}");
    }
    // `null` means unknown; a dimension that was not asked for is no member.
    let bare = ask(&api, "").await?;
    assert_eq!(bare["rows"][0].as_object().map(serde_json::Map::len), Some(5), "{bare}");
    let of_product = ask(&api, &format!("groupBy=country&filter=product={one}")).await?;
    assert_eq!(rows(&of_product, &["country", "scans"]), [r#""CH" 2"#, r#""DE" 1"#]);
    Ok(())
}

/// Those that are in no row are added up, so that rows and others together are the totals.
async fn groups_beyond_the_top_are_added_up(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let (mut records, mut products) = (Vec::new(), Vec::new());
    for (place, scans) in [("A", 3), ("B", 2), ("C", 1), ("D", 1)] {
        products.push(linked(&api, place, &[]).await?);
        records.extend((0..scans).map(|n| scan(place, NOW - n * HOUR, "203.0.113.1", PHONE)));
    }
    take(&api, 0, &records).await?;
    let answer = ask(&api, "groupBy=product&top=2&interval=hour").await?;
    let (a, b) = (&products[0], &products[1]);
    let expected = [a, a, b, a, b].map(|product| format!("{product:?} 1"));
    assert_eq!(rows(&answer, &["product", "scans"]), expected);
    assert_eq!(answer["other"], json!({"groups": 2, "scans": 2, "newDevices": 0, "robots": 0}));
    assert_eq!(answer["totals"]["scans"], 7);
    assert_eq!(answer["rows"][4]["from"], NOW);
    assert_eq!((&answer["groupBy"], &answer["interval"]), (&json!(["product"]), &json!("hour")));
    // Links are counted by the day: the range is whole days.
    let query = format!("groupBy=link&top=2&interval=day&from={}&to={}", NOW - HOUR, NOW + HOUR);
    let answer = ask(&api, &query).await?;
    assert_eq!(rows(&answer, &["link", "scans"]), [r#""tn.gg/A" 3"#, r#""tn.gg/B" 2"#]);
    let day = NOW / (24 * HOUR) * 24 * HOUR;
    assert_eq!((&answer["from"], &answer["to"]), (&json!(day), &json!(day + 24 * HOUR)));
    assert_eq!(answer["other"]["groups"], 2);
    Ok(())
}

async fn answers_come_as_csv(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    linked(&api, "ONE", &[]).await?;
    let records = [
        scan("ONE", NOW, "203.0.113.1", PHONE),
        scan("ONE", NOW, "203.0.113.200", PHONE),
        scan("ONE", NOW, "203.0.113.200", PHONE),
        scan("ONE", NOW, "192.0.2.1", ROBOT),
    ];
    take(&api, 0, &records).await?;
    let get = async |query: &str, accept: &str| -> Result<Answer> {
        let request = Request::get(format!("/scans/stats?{query}"))
            .header(header::AUTHORIZATION, &api.key)
            .header(header::ACCEPT, accept)
            .body(Body::empty())?;
        api.send(request).await
    };
    let query = "from=2025-10-09&to=2025-10-10&interval=day&timeZone=Europe/Berlin&groupBy=country&top=2";
    let answer = get(query, "text/csv").await?;
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"), "{answer:?}");
    assert!(answer.header("vary").is_some_and(|vary| vary.contains("Accept")), "{answer:?}");
    let day = "2025-10-09T00:00:00+02:00,2025-10-10T00:00:00+02:00";
    let expected = format!(
        "from,to,country,scans,newDevices,robots\n{day},DE,2,1,0\n{day},CH,1,1,0\n{day},(other),0,0,1\n"
    );
    assert_eq!(String::from_utf8(answer.bytes)?, expected);
    let json = get(query, "application/json, text/csv;q=0.9").await?;
    assert_eq!(json.header("content-type"), Some("application/json"));
    let refused = get("groupBy=x", "text/csv").await?;
    refused.problem(400, 40003);
    Ok(())
}

async fn what_cannot_be_answered_is_refused(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    for (query, fault) in [
        ("groupBy=country,language", "scans are not counted by these together"),
        ("groupBy=thng", "groupBy: \"thng\" is none of"),
        ("filter=country", "filter: "),
        ("filter=country%3EA", "filter: only conditions"),
        ("filter=tags=x", "filter: \"tags\" cannot be filtered by"),
        ("interval=minute", "interval must be"),
        ("timeZone=Mars/Olympus", "timeZone: "),
        ("timeZone=Asia/Kolkata&interval=day", "whole hours from UTC"),
        ("from=tomorrow", "from must be"),
        ("from=2025-10-10&to=2025-10-09", "from must be before to"),
        ("from=2020-01-01&interval=hour", "at most 31 days by the hour"),
        ("top=0", "top must be a whole number from 1 to 1000"),
        ("top=1000&interval=hour&groupBy=country", "top: "),
        ("groupBy=link&interval=hour", "interval: links are counted by the day"),
        ("groupBy=link&interval=day&timeZone=Europe/Berlin", "timeZone: links are counted by the day of UTC"),
        ("filter=link=tn.gg/A&from=2024-01-01&to=2024-02-01", "from: counts of links are kept for 400 days"),
        (
            "from=2024-01-01&to=2024-02-01&interval=day&timeZone=Europe/Berlin",
            "from: counts by the hour are kept",
        ),
        ("groupBy=project&filter=project=UKXAGyEf8SQ5eTDmVgGpHqAa", "groupBy: the filter names one project"),
    ] {
        let faults = api.get(&format!("/scans/stats?{query}")).await?.problem(400, 40003);
        assert!(faults.iter().any(|said| said.contains(fault)), "{query}: {faults:?}");
    }
    let both = api.get("/scans/stats?top=0&interval=x").await?.problem(400, 40003);
    assert_eq!(both.len(), 2, "every fault at once: {both:?}");
    let ignored = api.get("/scans/stats?group=country").await?;
    assert_eq!((ignored.status.as_u16(), ignored.header("x-ignored")), (200, Some("group")), "{ignored:?}");
    Ok(())
}

/// A scan of a link that names 100 projects, some of them twice, counts once in each view, and in few of them.
async fn projects_of_a_scan_are_bounded(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let own = super::operators::project(&api).await?;
    linked(&api, "TWICE", &[&own, &own]).await?;
    let ids: Vec<String> = (0..100_u8)
        .map(|n| shared::id::ProjectId::new(1_760_000_000_000 + i64::from(n), [n; 16]).to_string())
        .collect();
    linked(&api, "MANY", &ids.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    take(&api, 0, &[scan("TWICE", NOW, "203.0.113.1", PHONE)]).await?;
    for query in [format!("filter=project={own}"), "groupBy=project".to_owned()] {
        assert_eq!(rows(&ask(&api, &query).await?, &["scans"]), ["1"], "{query}");
    }
    take(&api, 1, &[scan("MANY", NOW, "203.0.113.1", PHONE)]).await?;
    let answer = ask(&api, "groupBy=project&top=100").await?;
    assert_eq!((rows(&answer, &["scans"]).len(), &answer["totals"]["scans"]), (1 + 8, &json!(2)));
    // 14 rows in the view of the account and 13 in that of each project; nine of the table of projects.
    assert!(backfill::count(&api, "scan_statistics_days").await? <= 2 * 14 + 9 * 14 + 9);
    Ok(())
}

crate::on_both_engines!(
    projects_of_a_scan_are_bounded,
    scans_are_counted_by_each_dimension,
    groups_beyond_the_top_are_added_up,
    answers_come_as_csv,
    what_cannot_be_answered_is_refused,
);
