//! `waymark demo` against a running service: what it promises, that it can be repeated, and that it leaves nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::UNIX_EPOCH,
};

use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::{Value, json};

use crate::harness::{DOMAIN, Waymark, eventually, key, texts};

/// Every list that a demo adds to.
const LISTS: [&str; 9] = [
    "/projects",
    "/products",
    "/places",
    "/thngs",
    "/redirections",
    "/webhooks",
    "/jobs/actions",
    "/actions/all",
    "/authentication/cases",
];

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// All rows of a list.
async fn all(service: &Waymark, path: &str) -> Vec<Value> {
    let base = Url::parse(&service.running.api_url).unwrap();
    let mut url = base.join(path).unwrap();
    url.query_pairs_mut().append_pair("perPage", "100");
    let mut rows: Vec<Value> = Vec::new();
    loop {
        let response = service.http.get(url.clone()).header("authorization", key()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{url}");
        let link = response.headers().get("link").map(|link| link.to_str().unwrap().to_owned());
        rows.extend(response.json::<Vec<Value>>().await.unwrap());
        let Some(link) = link else { return rows };
        let next = link.split(['<', '>']).nth(1).unwrap();
        url = base.join(&percent_decode_str(next).decode_utf8().unwrap()).unwrap();
    }
}

/// All that the lists hold.
async fn everything(service: &Waymark) -> BTreeMap<&'static str, Vec<Value>> {
    let mut found = BTreeMap::new();
    for path in LISTS {
        found.insert(path, all(service, path).await);
    }
    found
}

fn counts(found: &BTreeMap<&'static str, Vec<Value>>) -> BTreeMap<&'static str, usize> {
    found.iter().map(|(path, rows)| (*path, rows.len())).collect()
}

/// How many rows have which text in a custom field.
fn by_field(rows: &[Value], field: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for row in rows {
        if let Some(value) = row["customFields"][field].as_str() {
            *found.entry(value.to_owned()).or_default() += 1;
        }
    }
    found
}

/// Something of the account's own, scanned once; gives the statistics that have the scan.
async fn own_item(service: &Waymark) -> Value {
    let body = json!({"name": "Own bag", "tags": ["demo"], "customFields": {"demo": true}});
    let (status, thng) = service.call("POST", "/thngs", Some(body)).await;
    assert_eq!(status, 201, "{thng}");
    let body =
        json!({"platformId": thng["id"], "defaultRedirectUrl": "https://example.com/own", "shortId": "OWN1"});
    assert_eq!(service.call("POST", "/redirections", Some(body)).await.0, 201);
    assert_eq!(service.call("POST", "/products", Some(json!({"name": "Own product"}))).await.0, 201);
    assert_eq!(service.call("POST", "/actions/scans", Some(json!({"thng": thng["id"]}))).await.0, 201);
    eventually("the first scan", async || {
        let (status, _) = service.scan(DOMAIN, "OWN1").await;
        (status == 307).then_some(())
    })
    .await;
    eventually("the scan in the statistics", async || {
        let (_, stats) = service.call("GET", "/scans/stats?groupBy=country", None).await;
        (stats["totals"]["scans"] == 1).then_some(stats)
    })
    .await
}

/// An application in a project; gives its path.
async fn own_application(service: &Waymark, project: &str) -> String {
    let path = format!("/projects/{project}/applications");
    let (status, made) = service.call("POST", &path, Some(json!({"name": "Own application"}))).await;
    assert_eq!(status, 201, "{made}");
    format!("{path}/{}", made["id"].as_str().unwrap())
}

/// A Thng and an ended job in a project, without the marks of a demo; gives their paths.
async fn own_in_project(service: &Waymark, project: &str) -> (String, String) {
    let path = format!("/thngs?project={project}");
    let (status, thng) = service.call("POST", &path, Some(json!({"name": "Own case"}))).await;
    assert_eq!(status, 201, "{thng}");
    let jobs = format!("/jobs/actions?project={project}");
    let known = all(service, &jobs).await;
    let body = json!({"type": "ACTION_CREATION", "target": "THNGS", "payload": {"type": "checkins"},
        "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": [thng["id"]]}});
    assert_eq!(service.call("POST", &jobs, Some(body)).await.0, 202);
    let job = eventually("the job has ended", async || {
        let listed = all(service, &jobs).await;
        let is_new = |job: &&Value| known.iter().all(|one| one["id"] != job["id"]);
        listed.iter().find(is_new).filter(|job| !job["completedAt"].is_null()).cloned()
    })
    .await;
    let path = |list: &str, one: &Value| format!("{list}/{}", one["id"].as_str().unwrap());
    (path("/thngs", &thng), path("/jobs/actions", &job))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_shows_what_it_promises_and_leaves_nothing() {
    let service = Waymark::start().await;
    let stats = own_item(&service).await;
    let before = everything(&service).await;

    let args = ["demo", "--items", "60", "--seed", "7"];
    let (code, out, error) = service.run_tool(&args).await;
    assert_eq!(code, 0, "{out}{error}");
    for part in
        ["seed 7, 60 items", "6 products, 60 items with a link each", "2 jobs", "waymark demo --remove"]
    {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let filled = everything(&service).await;
    let (old, new) = (counts(&before), counts(&filled));
    for (path, more) in [
        ("/projects", 1),
        ("/products", 6),
        ("/places", 2),
        ("/thngs", 60),
        ("/redirections", 60),
        ("/webhooks", 1),
        ("/jobs/actions", 2),
    ] {
        assert_eq!(new[path] - old[path], more, "{path}");
    }
    assert_eq!(filled["/webhooks"][0]["status"], "disabled");
    let failed: BTreeSet<(String, u64)> = filled["/jobs/actions"]
        .iter()
        .map(|job| {
            (job["status"].as_str().unwrap().to_owned(), job["failedOperationsAmount"].as_u64().unwrap())
        })
        .collect();
    let expected = [("COMPLETED".to_owned(), 0), ("COMPLETED_WITH_FAILURES".to_owned(), 2)];
    assert_eq!(failed, expected.into());

    // Verdicts of each kind.
    let results = all(&service, "/actions/authenticationResults").await;
    for (field, values) in [
        ("authenticationStatus", vec!["positive", "suspicious", "negative", "unknown"]),
        ("counterfeitStatus", vec!["none", "suspected", "confirmed"]),
        ("grayMarketStatus", vec!["none", "suspected", "confirmed"]),
    ] {
        let found = by_field(&results, field);
        for value in values {
            assert!(found.contains_key(value), "no {field} {value}: {found:?}");
        }
    }
    let copied = results.iter().filter(|one| one["customFields"]["duplicateProfile"]["isDuplicate"] == true);
    assert!(copied.count() >= 2, "two items are copied");
    assert!(new["/authentication/cases"] > old["/authentication/cases"], "somebody has to look at some");

    // Three months of scans over the world.
    let scans = all(&service, "/actions/scans?filter=tags%3Dwaymark-demo").await;
    let countries = by_field(&scans, "country");
    assert!(countries.len() > 8, "{countries:?}");
    for (country, count) in &countries {
        let listed = all(&service, &format!("/actions/scans?filter=customFields.country%3D{country}")).await;
        assert_eq!(listed.len(), *count, "{country}");
    }
    let times: Vec<i64> = scans.iter().map(|scan| scan["timestamp"].as_i64().unwrap()).collect();
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    let created = scans[0]["createdAt"].as_i64().unwrap();
    assert!(
        last - first > 60 * DAY_MS && *last <= created && created - first < 92 * DAY_MS,
        "{first} to {last}"
    );
    // The statistics have all of them, over three months and by country, beside the account's own.
    let range = format!("from={}&top=100", first.div_euclid(DAY_MS) * DAY_MS);
    let (_, now) = service.call("GET", &format!("/scans/stats?{range}&groupBy=country"), None).await;
    assert_eq!(now["totals"]["scans"], json!(scans.len() + 1), "{now}");
    let by_country = |stats: &Value| -> BTreeMap<String, usize> {
        let row = |row: &Value| Some((row["country"].as_str()?.to_owned(), row["scans"].as_u64()? as usize));
        stats["rows"].as_array().into_iter().flatten().filter_map(row).collect()
    };
    assert_eq!(by_country(&now), countries);
    for (dimension, least) in [("product", 4), ("verdict", 4), ("language", 5), ("device", 1)] {
        let (_, now) = service.call("GET", &format!("/scans/stats?{range}&groupBy={dimension}"), None).await;
        let known = now["rows"].as_array().unwrap().iter().filter(|row| !row[dimension].is_null()).count();
        assert!(known >= least && now["totals"]["scans"] == json!(scans.len() + 1), "{dimension}: {now}");
    }
    let (_, months) = service.call("GET", &format!("/scans/stats?{range}&interval=month"), None).await;
    assert!(months["rows"].as_array().unwrap().len() >= 3, "{months}");

    // Again: nothing. Another one: refused.
    let (code, out, error) = service.run_tool(&args).await;
    assert!(code == 0 && out.contains("nothing was changed"), "{out}{error}");
    assert_eq!(everything(&service).await, filled);
    let (code, _, error) = service.run_tool(&["demo", "--items", "60", "--seed", "8"]).await;
    assert!(code == 1 && error.contains("another demo is there, of --seed 7 --items 60"), "{error}");

    // Away, and the rest as it was, also what somebody put into the project.
    let project = filled["/projects"][0]["id"].as_str().unwrap();
    let application = own_application(&service, project).await;
    let (thng, job) = own_in_project(&service, project).await;
    let with_own = everything(&service).await;
    let (code, out, error) = service.run_tool(&["demo", "--remove"]).await;
    assert!(code == 1 && error.contains("Own application"), "{out}{error}");
    assert_eq!(everything(&service).await, with_own);
    assert_eq!(service.call("DELETE", &application, None).await.0, 200);
    let (code, out, error) = service.run_tool(&["demo", "--remove"]).await;
    assert!(code == 0 && out.contains("The demo is removed"), "{out}{error}");
    for path in [&job, &thng] {
        assert_eq!(service.call("GET", path, None).await.0, 200, "{path}");
    }
    for action in all(&service, &format!("{thng}/actions/all")).await {
        let path = format!("/actions/all/{}", action["id"].as_str().unwrap());
        assert_eq!(service.call("DELETE", &path, None).await.0, 200, "{path}");
    }
    for path in [&job, &thng] {
        assert_eq!(service.call("DELETE", path, None).await.0, 200, "{path}");
    }
    let after = everything(&service).await;
    assert_eq!(counts(&after), old);
    assert_eq!(after, before);
    let (_, now) = service.call("GET", "/scans/stats?groupBy=country", None).await;
    let counted = |stats: &Value| (stats["totals"].clone(), stats["rows"].as_array().map(Vec::len));
    assert_eq!(counted(&now), counted(&stats));
    let (_, now) = service.call("GET", &format!("/scans/stats?{range}"), None).await;
    assert_eq!(now["totals"]["scans"], 1, "the account's own: {now}");
    let (code, out, _) = service.run_tool(&["demo", "--remove"]).await;
    assert!(code == 0 && out.contains("There is no demo"), "{out}");
    // No answer of the first one is given again.
    let (code, out, error) = service.run_tool(&args).await;
    assert!(code == 0 && out.contains("60 items with a link each"), "{out}{error}");
    assert_eq!(counts(&everything(&service).await), new);
    service.stop().await;
}

/// Killed while it works, a demo goes on, and ends as one that was not.
#[tokio::test(flavor = "multi_thread")]
async fn a_demo_that_was_cut_short_goes_on() {
    let args = ["demo", "--items", "60", "--seed", "7", "--parallel", "1"];
    let whole = Waymark::start().await;
    let (code, out, error) = whole.run_tool(&args).await;
    assert_eq!(code, 0, "{out}{error}");
    let expected = counts(&everything(&whole).await);
    let scans = async |service: &Waymark| {
        let from = UNIX_EPOCH.elapsed().unwrap().as_millis() as i64 - 100 * DAY_MS;
        let (_, stats) = service.call("GET", &format!("/scans/stats?from={from}"), None).await;
        stats["totals"]["scans"].as_u64().unwrap()
    };
    let counted = scans(&whole).await;
    assert!(counted > 50, "{counted}");
    whole.stop().await;

    let service = Waymark::start().await;
    let before = everything(&service).await;
    // Each time it comes further, by what is there when it is killed.
    for list in ["/projects", "/thngs", "/actions/encodings", "/actions/commissions", "/actions/scans"] {
        let mut tool = service.tool();
        tool.args(args).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = tool.spawn().unwrap();
        eventually(list, async || (!all(&service, list).await.is_empty()).then_some(())).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (code, out, error) = service.run_tool(&args).await;
    assert_eq!(code, 0, "{out}{error}");
    assert_eq!(counts(&everything(&service).await), expected);
    assert_eq!(scans(&service).await, counted, "none is counted twice");

    // And so does a removal.
    let mut tool = service.tool();
    tool.args(["demo", "--remove"]).stdout(std::process::Stdio::piped());
    let mut child = tool.spawn().unwrap();
    eventually("the links are gone", async || all(&service, "/redirections").await.is_empty().then_some(()))
        .await;
    child.kill().unwrap();
    child.wait().unwrap();
    if all(&service, "/projects").await != before["/projects"] {
        let (code, _, error) = service.run_tool(&args).await;
        assert!(code == 1 && error.contains("a removal was cut short"), "{error}");
    }
    assert_eq!(service.run_tool(&["demo", "--remove"]).await.0, 0);
    assert_eq!(everything(&service).await, before);
    assert_eq!(scans(&service).await, 0);
    service.stop().await;
}

/// What was refused is asked for again by the next run; of two demos both are removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_demo_goes_on_and_two_are_removed() {
    let service = Waymark::start().await;
    let before = everything(&service).await;
    let (_, accounts) = service.call("GET", "/accounts", None).await;
    let account = format!("/accounts/{}", accounts[0]["id"].as_str().unwrap());
    let lead_to = async |hosts: Value| {
        let body = json!({"targetHosts": hosts});
        let (status, answer) = service.call("PUT", &account, Some(body)).await;
        assert_eq!(status, 200, "{answer}");
    };
    let args = ["demo", "--items", "50"];
    lead_to(json!(["elsewhere.example"])).await;
    let (code, out, error) = service.run_tool(&args).await;
    assert!(code == 2 && error.contains("(take it away with --remove)"), "{out}{error}");
    lead_to(json!([])).await;
    let (code, out, error) = service.run_tool(&args).await;
    assert!(code == 0 && out.contains("50 items with a link each"), "{out}{error}");

    let projects = all(&service, "/projects").await;
    let project = &projects[0];
    let body =
        json!({"name": "Waymark demo", "tags": project["tags"], "customFields": project["customFields"]});
    assert_eq!(service.call("POST", "/projects", Some(body)).await.0, 201);
    let (code, out, error) = service.run_tool(&args).await;
    assert!(code == 1 && error.contains("2 demos are there"), "{out}{error}");
    let (code, out, error) = service.run_tool(&["demo", "--remove"]).await;
    assert_eq!(code, 0, "{out}{error}");
    assert_eq!(everything(&service).await, before);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_change_nothing() {
    let service = Waymark::start().await;
    let before = everything(&service).await;
    for (args, code, part) in [
        (vec!["demo", "--items", "10"], 64, "--items"),
        (vec!["demo", "--seed", "x"], 64, "--seed"),
        (vec!["demo", "--remove", "--items", "60"], 64, "--remove"),
        (vec!["demo", "--target", "ftp://example.com"], 64, "--target"),
        (vec!["demo", "--key", "short"], 64, "WAYMARK_OPERATOR_KEY"),
    ] {
        let (found, out, error) = service.run_tool(&args).await;
        assert!(found == code && error.contains(part), "{args:?}: {found} {out}{error}");
    }
    let mut tool = service.tool();
    tool.args(["demo"]).env("WAYMARK_OPERATOR_KEY", "x".repeat(80));
    let (code, out, error) = texts(&tool.output().unwrap());
    assert!(code == 1 && error.contains("401"), "{out}{error}");
    assert_eq!(everything(&service).await, before);

    // A project whose mark was edited is not passed over.
    let body =
        json!({"name": "Renamed", "tags": ["waymark-demo"], "customFields": {"waymarkDemo": {"seed": "x"}}});
    let (status, project) = service.call("POST", "/projects", Some(body)).await;
    assert_eq!(status, 201, "{project}");
    let edited = everything(&service).await;
    for args in [&["demo"][..], &["demo", "--remove"]] {
        let (code, out, error) = service.run_tool(args).await;
        assert!(code == 1 && error.contains("cannot be read"), "{args:?}: {out}{error}");
    }
    assert_eq!(everything(&service).await, edited);
    service.stop().await;
}
