//! The scan profile of a Thng always matches its actions, also after some of them are deleted.

use anyhow::{Context, Result};
use assessment::{service::assessment::history::rebuild_outdated, store::scan_profiles};
use axum::http::Method;
use kernel::store::Db;
use serde_json::{Value, json};
use shared::id::ActionId;
use sqlx::AssertSqlSafe;
use tests::{db::Engine, sql};
use verdicts::domain::assessment::{
    client::{Language, NetworkHash},
    profile::Profile,
};

use super::{
    Api,
    authentication::{BERN, HOUR, TOKYO, id, recorded, scanned},
};

const SWISS: Option<(&str, &str, (f64, f64))> = Some(("Bern", "CH", BERN));

async fn profile(api: &Api, thng: &str) -> Result<Profile> {
    let mut conn = api.made.app.core.db.read().await?;
    Ok(scan_profiles::load(&mut conn, api.made.account, thng.parse()?).await?.profile)
}

/// The hours at which the sessions of a profile begin, and how many redirects each has.
async fn hours(api: &Api, thng: &str) -> Result<Vec<(i64, u32)>> {
    let profile = profile(api, thng).await?;
    Ok(profile.sessions().map(|(_, one)| (one.first.0 / HOUR, one.implicit)).collect())
}

/// What a replay says: how many scans there are, and whether the stored profile is what they make.
async fn replayed(api: &Api, thng: &str) -> Result<(Value, Value)> {
    let body = api.post("/authentication/replay", json!({"thng": thng})).await?.must_be(200)?.json();
    Ok((body["scans"].clone(), body["profileMatches"].clone()))
}

async fn delete(api: &Api, uri: &str) -> Result<()> {
    let answer = api.delete(uri).await?;
    assert!(answer.status.is_success(), "{uri}: {answer:?}");
    Ok(())
}

/// A deleted scan is as if it never was: its session shrinks or goes, and the one that was crowded out comes back.
pub(super) async fn a_deleted_scan_leaves_the_profile(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = id(&api.create("/thngs", json!({"name": "t"})).await?);
    let mut scans: Vec<ActionId> = Vec::new();
    for hour in 0..70 {
        scans.push(scanned(&api, &thng, hour, "Phone/1", SWISS).await?);
    }
    // A second scan of one session, better known: its session is the one by device and half hour.
    let twin = scanned(&api, &thng, 30, "Phone/2", SWISS).await?;
    let kept = |gone: &[i64], from: i64| -> Vec<(i64, u32)> {
        let count = |hour: i64| if hour == 30 && !gone.contains(&-30) { 2 } else { 1 };
        (from..70).filter(|hour| !gone.contains(hour)).map(|hour| (hour, count(hour))).collect()
    };
    assert_eq!(hours(&api, &thng).await?, kept(&[], 6));
    let path = |id: &ActionId| format!("/thngs/{thng}/actions/implicitScans/{id}");
    // Older than all that is kept.
    delete(&api, &path(&scans[2])).await?;
    assert_eq!(hours(&api, &thng).await?, kept(&[], 6));
    // One of two in its session.
    delete(&api, &path(&twin)).await?;
    assert_eq!(hours(&api, &thng).await?, kept(&[-30], 6));
    // The only one of its session: hour 5 comes in, and later hour 4, 3 and 1, as 2 is gone.
    for (hour, from, gone) in [
        (40, 5, vec![-30, 40]),
        (69, 4, vec![-30, 40, 69]),
        (5, 3, vec![-30, 40, 69, 5]),
        (50, 1, vec![-30, 40, 69, 5, 50, 2]),
        (51, 0, vec![-30, 40, 69, 5, 50, 2, 51]),
        (52, 0, vec![-30, 40, 69, 5, 50, 2, 51, 52]),
    ] {
        delete(&api, &format!("/actions/all/{}", scans[usize::try_from(hour)?])).await?;
        assert_eq!(hours(&api, &thng).await?, kept(&gone, from), "hour {hour}");
    }
    assert_eq!(replayed(&api, &thng).await?, (json!(63), json!(true)));
    // What is no scan changes nothing.
    let encoding = id(&api.create("/actions/encodings", json!({"thng": thng})).await?);
    let before = profile(&api, &thng).await?;
    delete(&api, &format!("/actions/encodings/{encoding}")).await?;
    assert_eq!(profile(&api, &thng).await?, before);
    // The last one leaves nothing, and nobody's profile is touched by what is not there.
    let other = id(&api.create("/thngs", json!({"name": "u"})).await?);
    let only = scanned(&api, &other, 3, "Phone/1", Some(("Tokyo", "JP", TOKYO))).await?;
    delete(&api, &format!("/actions/implicitScans/{only}")).await?;
    assert!(profile(&api, &other).await?.is_empty());
    let again = api.delete(&format!("/actions/implicitScans/{only}")).await?;
    again.problem(404, 40401);
    assert_eq!(profile(&api, &thng).await?, before);
    Ok(())
}

/// "Left out: scans by operator, inspector and supply-chain keys": the stored action says whose it is.
pub(super) async fn scans_by_operators_are_not_in_the_profile(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = id(&api.create("/projects", json!({"name": "p"})).await?);
    let applications = format!("/projects/{project}/applications");
    let app = id(&api.create(&applications, json!({"name": "a"})).await?);
    let secret = api.get(&format!("{applications}/{app}/secretKey")).await?.json();
    let secret = secret["secretApiKey"].as_str().context("key")?.to_owned();
    let thng = id(&api.create(&format!("/thngs?project={project}"), json!({"name": "t"})).await?);
    let uri = format!("/thngs/{thng}/actions/scans");
    for (uri, kind) in [
        (uri.clone(), "scans"),
        (format!("{uri}?project={project}"), "scans"),
        (format!("/thngs/{thng}/actions/implicitScans"), "implicitScans"),
        (format!("/thngs/{thng}/actions/inspectorScans"), "inspectorScans"),
    ] {
        api.create(&uri, json!({})).await?;
        assert!(profile(&api, &thng).await?.is_empty(), "an operator's {kind}");
    }
    let made = api.call_as(&secret, Method::POST, &uri, Some(json!({}))).await?.must_be(201)?;
    assert_eq!(profile(&api, &thng).await?.len(), 1);
    assert_eq!(replayed(&api, &thng).await?, (json!(4), json!(true)));
    delete(&api, &format!("{uri}/{}", id(&made.json()))).await?;
    assert!(profile(&api, &thng).await?.is_empty());
    assert_eq!(replayed(&api, &thng).await?, (json!(3), json!(true)));
    Ok(())
}

/// Deletions and new scans of one Thng wait for each other: none is lost, none comes back.
pub(super) async fn concurrent_deletions_and_scans_leave_a_consistent_profile(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = id(&api.create("/thngs", json!({"name": "t"})).await?);
    let mut scans = Vec::new();
    for hour in 0..20 {
        scans.push(scanned(&api, &thng, hour, "Phone/1", SWISS).await?);
    }
    let deleted = scans.iter().step_by(2).map(|gone| {
        let uri = format!("/actions/implicitScans/{gone}");
        let api = &api;
        async move { delete(api, &uri).await }
    });
    let added = (20..30).map(|hour| scanned(&api, &thng, hour, "Phone/1", SWISS));
    let (deleted, added) =
        tokio::join!(futures_util::future::join_all(deleted), futures_util::future::join_all(added));
    deleted.into_iter().collect::<Result<Vec<_>>>()?;
    added.into_iter().collect::<Result<Vec<_>>>()?;
    let expected: Vec<(i64, u32)> =
        (0..30).filter(|hour| *hour >= 20 || hour % 2 == 1).map(|hour| (hour, 1)).collect();
    assert_eq!(hours(&api, &thng).await?, expected);
    assert_eq!(replayed(&api, &thng).await?, (json!(20), json!(true)));
    Ok(())
}

/// Networks and languages come from the context of the scans, are stored, and follow deletions and rebuilding.
pub(super) async fn networks_and_languages_are_those_of_the_scans_that_are_left(
    engine: Engine,
) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = id(&api.create("/thngs", json!({"name": "t"})).await?);
    let mut scans = Vec::new();
    for (hour, ip, language) in [
        (1, Some("203.0.113.7"), Some("de-CH")),
        (1, Some("203.0.113.200"), Some("fr")),
        (2, None, Some("fr-FR")),
        (3, Some("2001:db8:7::1"), None),
    ] {
        let mut doc =
            json!({"locationSource": "unknown", "scanSource": "edge", "context": {"userAgent": "Phone/1"}});
        for (name, text) in [("ipAddress", ip), ("language", language)] {
            if let Some(text) = text {
                doc["context"][name] = json!(text);
            }
        }
        scans.push(recorded(&api, &thng, hour, doc).await?);
    }
    let told = async || -> Result<Vec<(Option<NetworkHash>, Option<Language>)>> {
        Ok(profile(&api, &thng).await?.sessions().map(|(_, one)| (one.network, one.language)).collect())
    };
    let network = |ip: &str| ip.parse().ok().map(NetworkHash::of);
    let others = [(None, Language::of_tag("fr")), (network("2001:db8:7:8::9"), None)];
    let expected = |first: &str| [&[(network("203.0.113.1"), Language::of_tag(first))][..], &others].concat();
    assert_eq!(told().await?, expected("de"), "of two languages the first by the alphabet");
    assert_eq!(replayed(&api, &thng).await?, (json!(4), json!(true)));
    delete(&api, &format!("/actions/all/{}", scans[0])).await?;
    assert_eq!(told().await?, expected("fr"));
    assert_eq!(replayed(&api, &thng).await?, (json!(3), json!(true)));
    // As the release before leaves it: without them, and with its own version.
    let before = "UPDATE scan_profiles SET rules_version = 5, clients = NULL";
    sql::execute(&api.made.app.core.db, before).await?;
    assert_eq!(told().await?, [(None, None); 3]);
    assert_eq!(rebuild_outdated(&api.made.app.assessment, &mut String::new()).await?, 1);
    assert_eq!(told().await?, expected("fr"));
    Ok(())
}

/// After an upgrade: profiles of the release before are read as they must be at once, and made again in the background.
pub(super) async fn profiles_of_an_older_release_are_rebuilt(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let app = &api.made.app;
    let mut thngs = Vec::new();
    for name in ["a", "b", "c"] {
        let thng = id(&api.create("/thngs", json!({"name": name})).await?);
        for hour in 0..3 {
            scanned(&api, &thng, hour, "Phone/1", SWISS).await?;
        }
        thngs.push(thng);
    }
    // No sessions at all, which is wrong: whoever takes one of these for current shows it. One is of a release that
    // did not write its version, the other of one that did.
    let sql = format!(
        "UPDATE scan_profiles SET rules_version = CASE thng_id WHEN '{}' THEN 4 END, profile = '' \
         WHERE thng_id <> '{}'",
        thngs[1], thngs[2]
    );
    let changed = match &app.core.db {
        Db::Pg(pool) => sqlx::query(AssertSqlSafe(sql)).execute(pool).await?.rows_affected(),
        Db::Sqlite { write, .. } => {
            let sql = sql.replace("profile = ''", "profile = x''");
            sqlx::query(AssertSqlSafe(sql)).execute(write).await?.rows_affected()
        }
    };
    assert_eq!(changed, 2);
    assert_eq!(replayed(&api, &thngs[0]).await?, (json!(3), json!(false)), "it is outdated");
    // A new scan makes its profile again.
    scanned(&api, &thngs[0], 3, "Phone/1", SWISS).await?;
    assert_eq!(replayed(&api, &thngs[0]).await?, (json!(4), json!(true)));
    let mut after = String::new();
    assert_eq!(rebuild_outdated(&app.assessment, &mut after).await?, 1, "the others are as they must be");
    for (thng, scans) in thngs.iter().zip([4, 3, 3]) {
        assert_eq!(replayed(&api, thng).await?, (json!(scans), json!(true)));
    }
    assert_eq!(rebuild_outdated(&app.assessment, &mut String::new()).await?, 0);
    Ok(())
}

crate::on_both_engines!(
    profiles_of_an_older_release_are_rebuilt,
    networks_and_languages_are_those_of_the_scans_that_are_left,
    a_deleted_scan_leaves_the_profile,
    scans_by_operators_are_not_in_the_profile,
    concurrent_deletions_and_scans_leave_a_consistent_profile,
);
