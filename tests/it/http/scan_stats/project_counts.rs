//! Scans of a demo in the statistics, which no edge reported, their removal, and that nobody can add to the counts of others.

use anyhow::Result;
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, json::text, product::PHONE};

use super::{
    super::{
        Api,
        operators::{self, machine},
    },
    HOUR, NOW, api, ask, linked, scan, take,
};
use crate::on_both_engines;

const DAY: i64 = 24 * HOUR;

/// The rows of statistics, by the hour and by the day.
async fn rows(api: &Api) -> Result<[Vec<String>; 2]> {
    let mut tables = api.fingerprint().await?;
    Ok(["scan_statistics", "scan_statistics_days"].map(|name| tables.remove(name).unwrap_or_default()))
}

/// How many scans a question finds, and how many there are of each value of a dimension.
async fn counted(api: &Api, question: &str, dimension: &str) -> Result<(i64, Vec<(String, i64)>)> {
    let answer = ask(api, question).await?;
    let of = |row: &Value| {
        (row[dimension].as_str().unwrap_or_default().to_owned(), row["scans"].as_i64().unwrap_or_default())
    };
    let rows = answer["rows"].as_array().into_iter().flatten().map(of).collect();
    Ok((answer["totals"]["scans"].as_i64().unwrap_or_default(), rows))
}

/// The project of a demo.
async fn demo(api: &Api) -> Result<String> {
    text(&api.create("/projects", operators::demo()).await?, "id")
}

/// A product of a demo with a link of it; gives the id of the product.
async fn linked_of_demo(api: &Api, short_id: &str, project: &str) -> Result<String> {
    let marks = json!({"tags": ["waymark-demo"], "scopes": {"users": [], "projects": [project]}});
    let with = |mut body: Value| {
        let members = marks.as_object().cloned().unwrap_or_default();
        body.as_object_mut().into_iter().for_each(|body| body.extend(members.clone()));
        body
    };
    let product = text(&api.create("/products", with(json!({"name": short_id}))).await?, "id")?;
    let link = json!({"platformId": product, "shortDomain": "tn.gg", "shortId": short_id,
        "defaultRedirectUrl": "https://example.com/"});
    let made = api.post_once(&api.key, None, "/redirections", &with(link)).await?;
    assert_eq!(made.status, 201, "{made:?}");
    Ok(product)
}

async fn counts_of_a_project_come_and_go(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let project = demo(&api).await?;
    let product = linked_of_demo(&api, "DEMO1", &project).await?;
    linked(&api, "TWO", &[]).await?;
    take(&api, 0, &[scan("TWO", NOW, "203.0.113.1", PHONE)]).await?;
    let before = rows(&api).await?;
    assert!(before.iter().all(|rows| !rows.is_empty()));

    let uri = format!("/projects/{project}/scanCounts");
    let body = json!({"scans": [
        {"timestamp": NOW, "country": "CH", "region": "Bern", "city": "Bern", "system": "iPhone", "newDevice": true,
            "link": "tn.gg/DEMO1", "product": product},
        {"timestamp": NOW - 30 * DAY, "count": 4, "country": "FR", "language": "fr-FR", "verdict": "negative"},
        {"timestamp": NOW - 900 * DAY, "country": "DE"},
    ]});
    let made = api.call(Method::POST, &uri, Some(body)).await?;
    assert_eq!((made.status.as_u16(), made.json()), (201, json!({"scans": 6})));
    let range = format!("from={}&groupBy=country", NOW - 40 * DAY);
    let of = |country: &str, scans| (country.to_owned(), scans);
    assert_eq!(counted(&api, &range, "country").await?, (6, vec![of("FR", 4), of("CH", 2)]));
    let of_project = format!("{range}&filter=project={project}");
    assert_eq!(counted(&api, &of_project, "country").await?, (5, vec![of("FR", 4), of("CH", 1)]));
    let by_link = counted(&api, "groupBy=link", "link").await?;
    assert!(by_link.0 == 2 && by_link.1.contains(&of("tn.gg/DEMO1", 1)), "{by_link:?}");
    let by_product = counted(&api, "groupBy=product", "product").await?.1;
    assert!(by_product.contains(&of(&product, 1)), "{by_product:?}");
    let by_verdict = format!("from={}&groupBy=verdict&filter=verdict=negative", NOW - 40 * DAY);
    assert_eq!(counted(&api, &by_verdict, "verdict").await?, (4, vec![of("negative", 4)]));
    let by_project = counted(&api, "groupBy=project", "project").await?.1;
    assert!(by_project.contains(&(project.clone(), 1)), "{by_project:?}");
    // What is older than counts by the hour are kept is counted by the day.
    let old = ask(&api, "from=2023-01-01&to=2024-01-01").await?;
    assert_eq!(old["totals"]["scans"], 1, "{old}");

    api.call(Method::DELETE, &uri, None).await?.must_be(200)?;
    assert_eq!(rows(&api).await?, before, "as if they had never been counted");
    // There is nothing more to remove.
    assert_eq!(api.call(Method::DELETE, &uri, None).await?.status, 200);
    assert_eq!(rows(&api).await?, before);
    Ok(())
}

/// A scan of two projects leaves the account with the first that is removed, and the other keeps it.
async fn other_projects_keep_their_counts(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let (one, other) = (demo(&api).await?, operators::project(&api).await?);
    linked(&api, "BOTH", &[&one, &other]).await?;
    linked(&api, "FREE", &[]).await?;
    let scans = [
        scan("BOTH", NOW, "203.0.113.1", PHONE),
        scan("FREE", NOW, "203.0.113.1", PHONE),
        scan("BOTH", NOW, "203.0.113.2", super::ROBOT),
    ];
    take(&api, 0, &scans).await?;
    let of = async |project: &str| {
        let answer = ask(&api, &format!("filter=project={project}")).await?;
        Ok::<_, anyhow::Error>((answer["totals"]["scans"].clone(), answer["totals"]["robots"].clone()))
    };
    let (none, a_scan) = ((json!(0), json!(0)), (json!(1), json!(1)));
    assert_eq!((of(&one).await?, of(&other).await?), (a_scan.clone(), a_scan.clone()));
    api.call(Method::DELETE, &format!("/projects/{one}/scanCounts"), None).await?.must_be(200)?;
    assert_eq!((of(&one).await?, of(&other).await?), (none, a_scan));
    let all = ask(&api, "groupBy=country").await?;
    assert_eq!((&all["totals"]["scans"], &all["totals"]["robots"]), (&json!(1), &json!(0)), "{all}");
    Ok(())
}

async fn what_cannot_be_counted_is_refused_with_every_fault(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let project = demo(&api).await?;
    let before = rows(&api).await?;
    let uri = format!("/projects/{project}/scanCounts");
    let body = json!({"scans": [{"timestamp": "now"}, {"timestamp": 1, "country": "de", "verdict": "fine"}]});
    let faults = api.call(Method::POST, &uri, Some(body)).await?.problem(400, 40001);
    for part in ["scans[0].timestamp", "scans[1].country", "scans[1].verdict"] {
        assert!(faults.iter().any(|fault| fault.starts_with(part)), "{part}: {faults:?}");
    }
    let body = json!({"scans": [{"timestamp": 1}]});
    api.call(Method::POST, "/projects/UKXAGyEf8SQ5eTDmVgGpHqAa/scanCounts", Some(body))
        .await?
        .must_be(404)?;
    assert_eq!(rows(&api).await?, before);
    Ok(())
}

/// Nothing adds to the counts of a project, a product or a link that is not of a demo, and nothing takes them away.
async fn counts_of_others_are_refused(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let (project, real) = (demo(&api).await?, operators::project(&api).await?);
    linked_of_demo(&api, "MADE", &project).await?;
    // Of the project, and not marked; marked, and of another project.
    let product = linked(&api, "REAL", &[&project]).await?;
    let other = linked_of_demo(&api, "OTHER", &real).await?;
    let scans = [scan("REAL", NOW, "203.0.113.1", PHONE), scan("OTHER", NOW, "203.0.113.1", PHONE)];
    take(&api, 0, &scans).await?;
    let before = rows(&api).await?;
    let uri = |project: &str| format!("/projects/{project}/scanCounts");
    let one = json!({"scans": [{"timestamp": NOW}]});

    // A tag alone does not make a project one of a demo.
    let tagged = json!({"name": "p", "tags": ["waymark-demo"], "customFields": {"waymarkDemo": true}});
    let tagged = text(&api.create("/projects", tagged).await?, "id")?;
    // Neither does the mark itself, when it comes later.
    let marked = json!({"customFields": operators::demo()["customFields"]});
    api.call(Method::PUT, &format!("/projects/{real}"), Some(marked)).await?.must_be(200)?;
    for project in [&real, &tagged] {
        for (method, body) in [(Method::POST, Some(one.clone())), (Method::DELETE, None)] {
            let faults = api.call(method, &uri(project), body).await?.problem(403, 40301);
            assert!(faults.iter().any(|fault| fault.contains("waymark demo")), "{faults:?}");
        }
    }

    let body = json!({"scans": [
        {"timestamp": NOW, "link": "tn.gg/MADE"},
        {"timestamp": NOW, "link": "tn.gg/REAL"},
        {"timestamp": NOW, "link": "tn.gg/OTHER", "product": product},
        {"timestamp": NOW, "link": "tn.gg/NONE", "product": other},
        {"timestamp": NOW, "link": "elsewhere.example/MADE"},
        {"timestamp": NOW + 2 * DAY},
    ]});
    let faults = api.call(Method::POST, &uri(&project), Some(body)).await?.problem(400, 40001);
    let expected =
        ["[1].link", "[2].product", "[2].link", "[3].product", "[3].link", "[4].link", "[5].timestamp"];
    assert_eq!(faults.len(), expected.len(), "{faults:?}");
    for (fault, begin) in faults.iter().zip(expected) {
        assert!(fault.starts_with(&format!("scans{begin}: ")), "{faults:?}");
    }

    // An admin may; an editor may not, and neither may a role of the account's own that may change settings.
    let policy = json!({"name": "settings", "permissions": ["accounts:update"]});
    let policy = text(&api.create("/accessPolicies", policy).await?, "id")?;
    for role in ["editor", policy.as_str()] {
        let (_, key) = machine(&api, role, json!({})).await?;
        for (method, body) in [(Method::POST, Some(one.clone())), (Method::DELETE, None)] {
            api.call_as(&key, method, &uri(&project), body).await?.problem(403, 40301);
        }
    }
    assert_eq!(rows(&api).await?, before);
    let (_, key) = machine(&api, "admin", json!({})).await?;
    api.call_as(&key, Method::POST, &uri(&project), Some(one)).await?.must_be(201)?;
    Ok(())
}

on_both_engines!(
    counts_of_a_project_come_and_go,
    other_projects_keep_their_counts,
    what_cannot_be_counted_is_refused_with_every_fault,
    counts_of_others_are_refused,
);
