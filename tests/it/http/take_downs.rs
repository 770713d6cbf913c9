//! Take-downs: how they end, how many there may be, what they leave in the audit trail, on both engines.

use anyhow::{Context, Result};
use axum::http::Method;
use hosting::{
    domain::platform_take_down::NewTakeDown,
    service::{
        By,
        take_downs::{self, MAX_TAKE_DOWNS, Named},
    },
    store::withholdings,
};
use kernel::store::audit::platform_trail;
use push::store::snapshot::Snapshot;
use serde_json::{Value, json};
use shared::{time::UnixMillis, withheld::Withheld};
use tenants::{domain::audit::Broken, service::audit};
use tests::db::Engine;

use super::{
    Api,
    platform::{ask, entries, platform_key, redirection},
    webhooks::receiver::{count, execute},
};

const HOSTS: &str = "/platform/takedowns/hosts";
const HEAD: &str = "SELECT head FROM log_head";

async fn take_host_down(api: &Api, key: &str, host: &str, until: Option<i64>) -> Result<Value> {
    let body = json!({"reason": "x", "until": until});
    Ok(ask(api, key, Method::PUT, &format!("{HOSTS}/{host}"), Some(body)).await?.json())
}

/// The entries of the trail of the platform, newest first.
async fn platform_entries(api: &Api, key: &str, query: &str) -> Result<Vec<Value>> {
    let answer = ask(api, key, Method::GET, &format!("/platform/audit{query}"), None).await?;
    Ok(answer.json().as_array().context("entries")?.clone())
}

/// Hosts that were taken down until a time that is over.
fn over(first: usize, last: usize) -> String {
    format!(
        "WITH RECURSIVE n (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM n WHERE n < {last}) \
         INSERT INTO withheld (kind, subject, reason, author, created_at, ends_at) \
         SELECT 'host', 'h' || n || '.example', 'x', 'y', 1, 1 FROM n"
    )
}

async fn one_ends_by_the_clock_of_the_database(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let platform = platform_key(&api).await?;
    let later = core.clock.now().0 + 1_000_000;
    for host in ["soon.example", "late.example"] {
        take_host_down(&api, &platform, host, Some(later)).await?;
    }
    // A replica whose clock is a year ahead.
    let ahead = UnixMillis(core.clock.now().0 + 365 * 86_400_000);
    let by = By::platform("the end of a take-down", ahead);
    // By the clock of the database the time of both is to come.
    execute(&api, "UPDATE withheld SET ends_at = 32503680000000").await?;
    let head = count(&api, HEAD).await?;
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 0);
    assert_eq!(count(&api, HEAD).await?, head);
    // And one whose clock stands still.
    let by = By::platform("the end of a take-down", UnixMillis(0));
    execute(&api, "UPDATE withheld SET ends_at = 1 WHERE subject = 'soon.example'").await?;
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 1);
    assert_eq!(count(&api, HEAD).await?, head + 1);
    api.call_as(&platform, Method::GET, &format!("{HOSTS}/soon.example"), None).await?.problem(404, 40401);
    let entries = platform_entries(&api, &platform, "?filter=resourceId=soon.example").await?;
    let ended = entries.iter().find(|entry| entry["operation"] == "the end of a take-down");
    let ended = ended.context("no entry of the end")?;
    assert_eq!(ended["actorType"], "platform");
    assert!(ended.get("key").is_none() && ended.get("after").is_none(), "{ended}");
    Ok(())
}

async fn as_many_as_are_over_end_and_none_holds_the_others_up(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    execute(&api, &over(1, 250)).await?;
    // The one that comes first cannot be removed.
    execute(
        &api,
        "CREATE TABLE stuck (kind TEXT, subject TEXT, FOREIGN KEY (kind, subject) REFERENCES withheld (kind, subject))",
    )
    .await?;
    execute(&api, "INSERT INTO stuck VALUES ('host', 'h1.example')").await?;
    execute(&api, "UPDATE withheld SET ends_at = 0 WHERE subject = 'h1.example'").await?;
    let by = By::platform("the end of a take-down", core.clock.now());
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 249);
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 0);
    execute(&api, "DELETE FROM stuck").await?;
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 1);
    Ok(())
}

async fn there_are_at_most_so_many(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    take_host_down(&api, &platform, "first.example", None).await?;
    execute(&api, &over(2, usize::try_from(MAX_TAKE_DOWNS)?)).await?;
    let uri = format!("{HOSTS}/one-more.example");
    let head = count(&api, HEAD).await?;
    let why = json!({"reason": "x"});
    let faults = api.call_as(&platform, Method::PUT, &uri, Some(why.clone())).await?.problem(409, 40901);
    assert!(faults[0].starts_with("100000 links and hosts are taken down"), "{faults:?}");
    assert_eq!(count(&api, HEAD).await?, head);
    // What is taken down may be changed, and one that is released makes room.
    take_host_down(&api, &platform, "first.example", None).await?;
    ask(&api, &platform, Method::DELETE, &format!("{HOSTS}/first.example"), None).await?;
    ask(&api, &platform, Method::PUT, &uri, Some(why)).await?;
    Ok(())
}

async fn an_end_that_is_over_is_refused_to_commands_too(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let by = By::command("platform take-down", core.clock.now());
    let named = Named::Host("evil.example".to_owned());
    let new = |until| NewTakeDown { reason: "x".to_owned(), until: Some(until) };
    assert!(take_downs::take_down(&core.db, &by, &named, new(by.now)).await.is_err());
    assert_eq!(count(&api, "SELECT COUNT(*) FROM withheld").await?, 0);
    take_downs::take_down(&core.db, &by, &named, new(UnixMillis(by.now.0 + 60_000))).await?;
    Ok(())
}

/// A release later than this one withholds something else, too.
async fn a_kind_of_a_newer_release_leaves_the_others_in_force(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let platform = platform_key(&api).await?;
    take_host_down(&api, &platform, "evil.example", None).await?;
    execute(
        &api,
        "INSERT INTO withheld (kind, subject, reason, author, created_at, ends_at) \
         VALUES ('path', 'evil.example/a', 'x', 'y', 1, 1)",
    )
    .await?;
    let expected = [Withheld::Host("evil.example".into())];
    let mut conn = core.db.read().await?;
    assert_eq!(redirects::store::withheld::list_all(&mut conn).await?, expected);
    assert_eq!(withholdings::list_over(&mut conn, 10).await?, []);
    drop(conn);
    let mut snapshot = Snapshot::begin(&core.db).await?;
    assert_eq!(snapshot.setup().await?.withheld.as_deref(), Some(&expected[..]));
    drop(snapshot);
    let listed = ask(&api, &platform, Method::GET, "/platform/takedowns?perPage=1", None).await?;
    assert!(listed.json()[0]["host"] == "evil.example" && listed.header("link").is_none(), "{listed:?}");
    let by = By::platform("the end of a take-down", core.clock.now());
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 0, "it is of the release that knows it");
    Ok(())
}

async fn a_list_with_one_that_was_taken_down_changes_none(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    redirection(&api, "https://example.com/a").await?;
    let id = api.get("/redirections/ABC").await?.json()["platformId"].clone();
    let body = json!({"platformId": id, "defaultRedirectUrl": "https://example.com/a", "shortId": "DEF"});
    ask(&api, &api.key, Method::POST, "/redirections", Some(body)).await?;
    let uri = "/platform/takedowns/links/tn.gg/DEF";
    ask(&api, &platform, Method::PUT, uri, Some(json!({"reason": "spam"}))).await?;
    let before = api.fingerprint().await?;
    let change = json!({"defaultRedirectUrl": "https://example.com/b"});
    for ids in ["ABC,DEF", "DEF,ABC"] {
        let uri = format!("/redirections?ids={ids}");
        let faults = api.put(&uri, change.clone()).await?.problem(409, 40901);
        assert_eq!(faults, ["The redirection DEF was taken down: spam"]);
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

async fn what_concerns_no_account_is_in_the_trail_of_the_platform(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let platform = platform_key(&api).await?;
    redirection(&api, "https://example.com/a").await?;
    take_host_down(&api, &platform, "evil.example", None).await?;
    ask(&api, &platform, Method::DELETE, &format!("{HOSTS}/evil.example"), None).await?;
    let uri = "/platform/takedowns/links/tn.gg/ABC";
    ask(&api, &platform, Method::PUT, uri, Some(json!({"reason": "spam"}))).await?;
    // The owner of a link sees what concerns it, and nothing of the host, whose reason may be about another account.
    let own = entries(&api, "takeDown").await?;
    assert!(own.len() == 1 && own[0]["resourceId"] == "tn.gg/ABC", "{own:?}");
    let found = platform_entries(&api, &platform, "?filter=resource=takeDown").await?;
    assert_eq!(found.len(), 2, "{found:?}");
    let (released, taken_down) = (&found[0], &found[1]);
    for (entry, operation) in [
        (released, "DELETE /platform/takedowns/hosts/{host}"),
        (taken_down, "PUT /platform/takedowns/hosts/{host}"),
    ] {
        assert_eq!((&entry["resourceId"], &entry["operation"]), (&json!("evil.example"), &json!(operation)));
        assert!(entry["actorType"] == "platform" && entry["key"].is_string(), "{entry}");
    }
    assert_eq!(taken_down["after"], json!({"reason": "x", "until": null}));
    let keys = platform_entries(&api, &platform, "?filter=resource=platformKey&perPage=1").await?;
    assert_eq!(keys[0]["actorType"], "commandLine");
    let uri = "/platform/audit?filter=colour=red";
    api.call_as(&platform, Method::GET, uri, None).await?.problem(400, 40003);
    api.get("/platform/audit").await?.problem(403, 40301);

    // It is a chain of its own, which no account has, and is checked as theirs are.
    while audit::chain_new(core).await? > 0 {}
    let checked = async || audit::verify(&core.db, &core.secrets.audit, platform_trail()).await;
    assert_eq!(checked().await?, Ok(3));
    let numbered = platform_entries(&api, &platform, "").await?;
    let numbers: Vec<&Value> = numbered.iter().map(|entry| &entry["number"]).collect();
    assert_eq!(numbers, [3, 2, 1]);
    let listed = ask(&api, &platform, Method::GET, "/platform/accounts", None).await?.json();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "the platform is no account");
    let sql = format!("DELETE FROM audit_entries WHERE account_id = '{}' AND number = 2", platform_trail());
    execute(&api, &sql).await?;
    assert_eq!(checked().await?, Err(Broken::Missing(2)));
    Ok(())
}

async fn the_owner_sees_which_url_leads_to_a_host_that_was_taken_down(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    let product = api.create("/products", json!({"name": "p"})).await?;
    let new = json!({"platformId": product["id"], "shortId": "ABC", "defaultRedirectUrl": "https://example.com/",
        "endedUrl": "https://shop.evil.example/over"});
    let made = api.post("/redirections", json!([new])).await?.json();
    assert_eq!(made[0]["status"], 201, "{made}");
    for (host, member) in [("evil.example", "endedUrl"), ("example.com", "defaultRedirectUrl")] {
        take_host_down(&api, &platform, host, None).await?;
        let listed = api.get("/redirections").await?.json()[0].clone();
        for shown in [api.get("/redirections/ABC").await?.json(), listed] {
            let taken_down = &shown["takenDown"];
            assert_eq!(
                (&taken_down["host"], &taken_down["member"]),
                (&json!(host), &json!(member)),
                "{shown}"
            );
        }
    }
    ask(&api, &platform, Method::PUT, "/platform/takedowns/links/tn.gg/ABC", Some(json!({"reason": "x"})))
        .await?;
    let taken_down = &api.get("/redirections/ABC").await?.json()["takenDown"];
    assert!(taken_down.is_object() && taken_down.get("host").is_none() && taken_down.get("member").is_none());
    Ok(())
}

crate::on_both_engines!(
    the_owner_sees_which_url_leads_to_a_host_that_was_taken_down,
    one_ends_by_the_clock_of_the_database,
    as_many_as_are_over_end_and_none_holds_the_others_up,
    there_are_at_most_so_many,
    an_end_that_is_over_is_refused_to_commands_too,
    a_kind_of_a_newer_release_leaves_the_others_in_force,
    a_list_with_one_that_was_taken_down_changes_none,
    what_concerns_no_account_is_in_the_trail_of_the_platform,
);
