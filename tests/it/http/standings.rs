//! Permanent assessment state of an item: across a new commissioning, and from one release to the next.

use anyhow::Result;
use kernel::store::Db;
use serde_json::json;
use sqlx::AssertSqlSafe;
use tests::db::Engine;

use super::{
    Api,
    authentication::{BERN, Brand, CITIES, HOUR, check, scanned, statuses, trigger, with},
};

/// Scans by as many devices as cities, each in its own.
async fn scan_in(api: &Api, thng: &str, cities: usize, hours: std::ops::Range<i64>) -> Result<()> {
    for (n, hour) in hours.enumerate() {
        let at = n % cities;
        scanned(api, thng, hour, &format!("Phone{}/1", ["A", "B", "C", "D"][at]), Some(CITIES[at])).await?;
    }
    Ok(())
}

/// So many sessions at home that no other one is left in the profile.
async fn stay_home(api: &Api, thng: &str, from: i64) -> Result<()> {
    for hour in from..from + 70 {
        scanned(api, thng, hour, "PhoneA/1", Some(CITIES[0])).await?;
    }
    Ok(())
}

/// The points and statuses of a scan at home, and what is said of copies.
async fn judged(brand: &Brand<'_>, thng: &str, hour: i64) -> Result<(u64, String, String)> {
    let result = brand.judge(with(trigger(Some(thng), BERN), "timestamp", json!(hour * HOUR))).await?;
    let points = result["customFields"]["duplicatePoints"].as_u64().unwrap_or_default();
    Ok((points, statuses(&result)[1].to_owned(), check(&result, "duplicateChecks").1.to_owned()))
}

/// A scan of before the item was commissioned again, assessed after it, does not replace what was found since.
pub(super) async fn points_of_an_earlier_commissioning_do_not_replace_current_ones(
    engine: Engine,
) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    scan_in(&api, &thng, 4, 10..34).await?;
    for (kind, at) in [("decommissions", "1970-01-02T16:00:00Z"), ("commissions", "1970-01-03T02:00:00Z")] {
        let body = json!({"product": brand.product, "occurredAt": at, "factoryMetadata": {"factory": "F1"},
            "location": {"place": brand.place}});
        let made = api.post(&format!("/thngs/{thng}/actions/{kind}"), body).await?;
        assert!(made.status.is_success(), "{made:?}");
    }
    scan_in(&api, &thng, 3, 52..70).await?;
    let (current, status, reason) = judged(&brand, &thng, 99).await?;
    assert_eq!(status, "suspected", "{reason}");
    let (former, ..) = judged(&brand, &thng, 36).await?;
    assert!(former > current, "{former} points before, {current} since");
    stay_home(&api, &thng, 100).await?;
    let (left, status, reason) = judged(&brand, &thng, 171).await?;
    assert!(left < current && status == "suspected", "{left}: {reason}");
    assert!(reason.contains(&format!("with {current} points")), "{reason}");
    Ok(())
}

async fn run(api: &Api, pg: &str, sqlite: &str) -> Result<()> {
    let changed = match &api.made.app.core.db {
        Db::Pg(pool) => sqlx::query(AssertSqlSafe(pg)).execute(pool).await?.rows_affected(),
        Db::Sqlite { write, .. } => sqlx::query(AssertSqlSafe(sqlite)).execute(write).await?.rows_affected(),
    };
    anyhow::ensure!(changed == 1, "{changed} rows");
    Ok(())
}

/// What the release before wrote counts on; the greatest points of older rules do not.
pub(super) async fn peaks_of_the_previous_release_count_and_those_of_older_rules_do_not(
    engine: Engine,
) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    scan_in(&api, &thng, 4, 10..34).await?;
    let (points, ..) = judged(&brand, &thng, 99).await?;
    stay_home(&api, &thng, 100).await?;
    let without = "UPDATE item_standings SET standing = NULL, peak = NULL";
    run(&api, without, without).await?;
    let (_, status, reason) = judged(&brand, &thng, 171).await?;
    assert!(status == "suspected" && reason.contains(&format!("with {points} points")), "{reason}");
    // The release before raised the points beside this one: its columns are newer.
    let raised = "UPDATE item_standings SET points = 99";
    run(&api, raised, raised).await?;
    let (_, status, reason) = judged(&brand, &thng, 172).await?;
    assert!(status == "suspected" && reason.contains("with 99 points"), "{reason}");
    run(
        &api,
        "UPDATE item_standings SET peak = jsonb_set(peak, '{rulesVersion}', '4')",
        "UPDATE item_standings SET peak = json_set(peak, '$.rulesVersion', 4)",
    )
    .await?;
    let (_, status, reason) = judged(&brand, &thng, 173).await?;
    assert_eq!(status, "none", "{reason}");
    Ok(())
}

crate::on_both_engines!(
    points_of_an_earlier_commissioning_do_not_replace_current_ones,
    peaks_of_the_previous_release_count_and_those_of_older_rules_do_not,
);
