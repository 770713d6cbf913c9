//! Statistics after a time: what is removed, and which counts stay.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::Value;
use tests::{db::Engine, json::text, product::PHONE};

use super::{super::operators, HOUR, NOW, api, ask, backfill, linked, rows, scan, take};
use crate::on_both_engines;

/// Counts name nobody, and stay: a report of last year must not change because a link was removed.
async fn counts_stay_when_what_they_name_is_removed(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let project = operators::project(&api).await?;
    let product = linked(&api, "ONE", &[&project]).await?;
    take(&api, 0, &[scan("ONE", NOW, "203.0.113.1", PHONE), scan("ONE", NOW, "203.0.113.2", PHONE)]).await?;
    let questions =
        ["groupBy=product", "groupBy=link", "groupBy=project", "groupBy=country"].map(str::to_owned);
    let of_project = format!("filter=project={project}");
    let mut before = Vec::new();
    for question in questions.iter().chain([&of_project]) {
        let answer = ask(&api, question).await?;
        assert_eq!(answer["totals"]["scans"], 2, "{question}: {answer}");
        before.push(answer["rows"].clone());
    }
    let listed = api.get("/actions/implicitScans").await?.json();
    let action = text(&listed[0], "id")?;
    for uri in [
        format!("/actions/implicitScans/{action}"),
        "/redirections/ONE".to_owned(),
        format!("/products/{product}"),
        format!("/projects/{project}"),
    ] {
        let gone = api.call(Method::DELETE, &uri, None).await?;
        assert!(gone.status.is_success(), "{uri}: {gone:?}");
    }
    for (question, rows) in questions.iter().chain([&of_project]).zip(before) {
        let after = ask(&api, question).await.with_context(|| question.clone())?;
        // The range ends now: the counts are what is compared.
        let strip = |rows: &Value| {
            let mut rows = rows.clone();
            for row in rows.as_array_mut().into_iter().flatten() {
                row["from"] = Value::Null;
                row["to"] = Value::Null;
            }
            rows
        };
        assert_eq!(strip(&after["rows"]), strip(&rows), "{question}");
    }
    Ok(())
}

/// Days for which devices are known are few: a scan that comes later counts, but its device does not.
async fn hashes_of_devices_are_removed_after_days(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    linked(&api, "ONE", &[]).await?;
    take(&api, 0, &[scan("ONE", NOW, "203.0.113.1", PHONE), scan("ONE", NOW, "203.0.113.1", PHONE)]).await?;
    backfill::finish(&api).await?;
    assert_eq!(backfill::count(&api, "scan_devices").await?, 1);
    let purge = async || statistics::service::roll_ups::purge_devices(&api.made.app.core).await;
    assert_eq!(purge().await?, 0, "of today");
    api.made.clock.advance(4 * 24 * HOUR);
    assert_eq!(purge().await?, 1);
    assert_eq!(backfill::count(&api, "scan_devices").await?, 0);
    let late = NOW - 24 * HOUR;
    take(&api, 2, &[scan("ONE", late, "203.0.113.1", PHONE)]).await?;
    let answer = ask(&api, "interval=day").await?;
    assert_eq!(rows(&answer, &["scans", "newDevices"]), ["1 0", "2 1"], "{answer}");
    assert_eq!(backfill::count(&api, "scan_devices").await?, 0);
    Ok(())
}

/// Hours, and days of links, are removed after 400 days; days of anything else stay, and answers with them.
async fn hours_are_removed_after_a_time_and_days_stay(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    linked(&api, "ONE", &[]).await?;
    let records: Vec<_> = (0..60).map(|n| scan("ONE", NOW - n * 5 * HOUR, "203.0.113.1", PHONE)).collect();
    take(&api, 0, &records).await?;
    let purge = async || statistics::service::roll_ups::purge(&api.made.app.core).await;
    let (day, of_links) = (24 * HOUR, "filter=link=tn.gg/ONE");
    let range = format!(
        "from={}&to={}&interval=day&groupBy=country",
        NOW / day * day - 13 * day,
        NOW / day * day + day
    );
    let before = ask(&api, &range).await?;
    assert_eq!((before["totals"]["scans"].as_i64(), purge().await?), (Some(60), 0));
    let hours = backfill::count(&api, "scan_statistics").await?;
    let days = backfill::count(&api, "scan_statistics_days").await?;
    api.made.clock.advance(389 * day);
    assert_eq!(purge().await?, 0);
    let answer = ask(&api, &format!("{of_links}&from={}&to={}", NOW, NOW + HOUR)).await?;
    assert!(answer["totals"]["scans"].as_i64() > Some(0), "{answer}");
    // Some of 13 days are too old now, and then all of them.
    api.made.clock.advance(8 * day);
    let gone = purge().await?;
    assert!(gone > 0 && gone < (hours + days) as u64, "{gone} of {hours} and {days}");
    api.made.clock.advance(8 * day);
    purge().await?;
    assert_eq!(backfill::count(&api, "scan_statistics").await?, 0);
    assert_eq!(backfill::count(&api, "scan_statistics_days").await?, days - 13, "without those of the link");
    assert_eq!(ask(&api, &range).await?["rows"], before["rows"]);
    // What comes so late is counted by the day, and has no row that would be removed at once.
    take(&api, 60, &[scan("ONE", NOW, "203.0.113.1", PHONE)]).await?;
    assert_eq!(ask(&api, &range).await?["totals"]["scans"], 61);
    assert_eq!(purge().await?, 0);
    let faults = api.get(&format!("/scans/stats?from={}&to={}", NOW, NOW + HOUR)).await?.problem(400, 40003);
    assert!(faults[0].starts_with("from: counts by the hour are kept for 400 days"), "{faults:?}");
    Ok(())
}

on_both_engines!(
    counts_stay_when_what_they_name_is_removed,
    hashes_of_devices_are_removed_after_days,
    hours_are_removed_after_a_time_and_days_stay
);
