//! Scans of a link by the rule that decided, in every store of scans.

use anyhow::Result;
use axum::http::Method;
use serde_json::json;
use shared::wire::scan::FiredRule;
use tests::db::Engine;

use super::{super::operators::machine, *};

crate::on_all_scan_stores!(scans_of_a_link_are_counted_by_rule);

const PATH: &str = "/redirections/ONE/ruleStatistics";

/// A scan that a rule decided.
fn by(index: u16, name: Option<&str>, scan: ScanRecord) -> ScanRecord {
    let redirect_url: Box<str> = "https://example.com/rule".into();
    let rule = FiredRule { application: None, index, name: name.map(Into::into), redirect_url };
    ScanRecord { rule: Some(Box::new(rule)), ..scan }
}

async fn scans_of_a_link_are_counted_by_rule(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    linked(&api, "ONE", &[]).await?;
    linked(&api, "TWO", &[]).await?;
    let scan_of = |short_id: &str, at: i64, agent: &str| scan(short_id, at, "203.0.113.1", agent);
    take(
        &api,
        0,
        &[
            by(0, Some("half"), scan_of("ONE", NOW, PHONE)),
            by(1, Some("half"), scan_of("ONE", NOW + 1, PHONE)),
            by(1, Some("half"), scan_of("ONE", NOW + 2, ROBOT)),
            by(2, None, scan_of("ONE", NOW + 3, PHONE)),
            scan_of("ONE", NOW + 4, PHONE),
            // Of another link, and before the range.
            by(0, Some("half"), scan_of("TWO", NOW, PHONE)),
            by(0, Some("half"), scan_of("ONE", NOW - 2 * HOUR, PHONE)),
        ],
    )
    .await?;
    let range = format!("from={NOW}&to={}", NOW + HOUR);
    let answer = api.get(&format!("{PATH}?{range}")).await?.must_be(200)?;
    assert_eq!(
        answer.json(),
        json!({"from": NOW, "to": NOW + HOUR, "withoutRule": {"scans": 1, "robots": 0}, "rules": [
            {"index": 1, "name": "half", "scans": 2, "robots": 1},
            {"index": 2, "scans": 1, "robots": 0},
        ]})
    );
    let longer = api.get(&format!("{PATH}?from={}&to={}", NOW - 3 * HOUR, NOW + HOUR)).await?.json();
    assert_eq!(longer["rules"][0]["scans"], 3, "{longer}");
    api.get(&format!("{PATH}?from={}&to={NOW}", NOW - 32 * 24 * HOUR)).await?.problem(400, 40003);
    api.get("/redirections/NONE/ruleStatistics").await?.problem(404, 40401);
    let other = api.call_as(&api.other_key, Method::GET, &format!("{PATH}?domain=other.gg"), None).await?;
    other.problem(404, 40401);
    // Who reads links need not read statistics.
    let (_, printer) = machine(&api, "printer", json!({})).await?;
    api.call_as(&printer, Method::GET, PATH, None).await?.problem(403, 40301);
    Ok(())
}
