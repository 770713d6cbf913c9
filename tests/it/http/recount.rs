//! The greatest points of an item are counted again: in the background after an upgrade, and when a replay is applied.

use anyhow::{Context, Result};
use assessment::{service::assessment::history::rebuild_outdated, store::item_standings};
use kernel::store::Db;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tests::db::Engine;
use verdicts::domain::assessment::{
    RULES_VERSION,
    peak::{Level, Peak},
};

use super::{
    Api,
    authentication::Brand,
    cases::{copied, judged, standing},
};

const SUSPECTED: [&str; 3] = ["suspicious", "suspected", "none"];
const GOOD: [&str; 3] = ["positive", "none", "none"];

async fn peak(api: &Api, thng: &str) -> Result<Peak> {
    let mut conn = api.made.app.core.db.read().await?;
    let kept = item_standings::load(&mut conn, api.made.account, thng.parse()?).await?;
    kept.peak.context("no greatest points")
}

async fn replay(api: &Api, body: Value) -> Result<super::Answer> {
    api.post("/authentication/replay", body).await
}

/// Points of 99 by rules of another meaning, as an older release leaves them.
pub(super) async fn points_of_older_rules_are_counted_again(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = copied(&brand, "A").await?;
    judged(&brand, &thng, 99).await?;
    let before = peak(&api, &thng).await?;
    for sql in [
        "UPDATE item_standings SET points = 99, level = 'duplicate', \
         peak = CAST(REPLACE(REPLACE(REPLACE(CAST(peak AS TEXT), '\"rulesVersion\": ', '\"rulesVersion\":'), \
         '\"rulesVersion\":NOW', '\"rulesVersion\":4'), '\"points\":', '\"points\":99,\"was\":') AS KIND)",
        "UPDATE scan_profiles SET rules_version = 4",
    ] {
        let sql = sql.replace("NOW", &RULES_VERSION.to_string());
        match &api.made.app.core.db {
            Db::Pg(pool) => {
                let sql = sql.replace("KIND", "JSONB").replace("'\"points\":'", "'\"points\": '");
                sqlx::query(AssertSqlSafe(sql)).execute(pool).await?;
            }
            Db::Sqlite { write, .. } => {
                sqlx::query(AssertSqlSafe(sql.replace("KIND", "TEXT"))).execute(write).await?;
            }
        }
    }
    let old = peak(&api, &thng).await?;
    assert_eq!((old.points, old.rules_version), (99, 4));
    assert_eq!(rebuild_outdated(&api.made.app.assessment, &mut String::new()).await?, 1);
    let after = peak(&api, &thng).await?;
    // The scan that was assessed last is not stored: the points before are those of it.
    assert!(after.points <= before.points && after.points + 2 >= before.points, "{after:?} after {before:?}");
    assert_eq!((after.level, after.rules_version), (before.level, RULES_VERSION));
    assert_eq!(standing(&api, &thng).await?, SUSPECTED, "verdicts are left to assessments");
    Ok(())
}

/// Under milder settings a verdict stays until a replay applies them, and comes back when they are undone.
pub(super) async fn an_applied_replay_replaces_verdict_and_points(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let (thng, other) = (copied(&brand, "A").await?, brand.thng("B").await?);
    judged(&brand, &thng, 99).await?;
    let set = async |settings: Value| -> Result<()> {
        api.put("/authentication/settings", settings).await?.must_be(200)?;
        Ok(())
    };
    set(json!({"duplicatePoints": 100, "suspectedPoints": 100})).await?;
    assert_eq!(standing(&api, &thng).await?, SUSPECTED);
    assert_eq!(peak(&api, &thng).await?.level, Level::Duplicate);
    let refused = replay(&api, json!({"thng": thng, "apply": true, "settings": {}})).await?;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(replay(&api, json!({"thng": thng, "apply": "yes"})).await?.status, 400);
    let many = replay(&api, json!({"product": brand.product, "apply": true})).await?;
    assert_eq!(many.status, 200, "{many:?}");
    let told = many.json()["thngs"].as_array().context("thngs")?.clone();
    let of = |thng: &str| told.iter().find(|one| one["thng"] == thng).cloned().unwrap_or_default();
    assert_eq!(of(&thng)["stored"]["counterfeitStatus"], "none", "{told:?}");
    assert!(of(&other).get("stored").is_none(), "never assessed: {told:?}");
    assert_eq!(standing(&api, &thng).await?, GOOD);
    assert_eq!(peak(&api, &thng).await?.level, Level::None);
    set(json!({})).await?;
    assert_eq!(replay(&api, json!({"thng": thng, "apply": true})).await?.status, 200);
    assert_eq!(standing(&api, &thng).await?, SUSPECTED);
    assert_eq!(peak(&api, &thng).await?.level, Level::Duplicate);
    Ok(())
}

crate::on_both_engines!(
    points_of_older_rules_are_counted_again,
    an_applied_replay_replaces_verdict_and_points,
);
