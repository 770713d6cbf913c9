//! Who changes what: operators of a project, a second operator who approves, and other accounts.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use link_changes::{domain::change::APPROVAL_MS, service::purge};
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, all, ask, counts, finished, links, with_product, work_all, worked};
use crate::http::operators::{accesses, machine, project};

crate::on_both_engines!(
    operators_of_a_project_change_its_links_only,
    who_is_confined_later_does_not_see_what_it_did_before,
    a_change_waits_for_a_second_operator,
    what_is_approved_is_what_was_asked_for,
    what_nobody_approves_is_cancelled_after_thirty_days,
    another_account_sees_and_changes_nothing,
);

/// Whether changes of the account wait for a second operator.
async fn set_approval(api: &Api, waits: bool) -> Result<()> {
    let uri = format!("/accounts/{}", api.made.account);
    let set = api.put(&uri, json!({"approveBulkChanges": waits})).await?;
    ensure!(set.status == 200 && set.json()["approveBulkChanges"] == waits, "{set:?}");
    Ok(())
}

async fn operators_of_a_project_change_its_links_only(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let (own, other) = (project(&api).await?, project(&api).await?);
    links(&api, &product, "OWN", 3, &json!({"scopes": {"users": [], "projects": [own]}})).await?;
    links(&api, &product, "OTHER", 2, &json!({"scopes": {"users": [], "projects": [other]}})).await?;
    links(&api, &product, "FREE", 2, &json!({})).await?;
    let before = all(&api).await?;
    let confined = json!({"conditions": [format!("project={own}")]});
    let (_, editor) = machine(&api, "editor", confined.clone()).await?;
    let (_, second) = machine(&api, "editor", confined).await?;
    let call = async |key: &str, method: Method, path: &str, body: Value| {
        let body = (method == Method::POST).then_some(body);
        api.call_as(key, method, path, body).await
    };
    let body = json!({"product": product, "patch": {"title": "New"}, "dryRun": true});
    let seen = call(&editor, Method::POST, "/jobs/redirections", body).await?.json();
    ensure!(seen["links"] == 3 && seen["projects"] == json!([own]), "{seen}");
    // Who wrote a link is told to who reads the whole account.
    ensure!(seen["sample"][0]["after"].get("updatedBy").is_none(), "{seen}");
    let body = json!({"product": product, "patch": {"scopes": {"projects": [other]}}});
    let faults = call(&editor, Method::POST, "/jobs/redirections", body).await?.problem(400, 40001);
    ensure!(faults[0].starts_with("patch.scopes"), "{faults:?}");
    let body = json!({"product": product, "patch": {"title": "New"}, "expect": 3});
    let asked = call(&editor, Method::POST, "/jobs/redirections", body).await?;
    ensure!(asked.status == 201, "{asked:?}");
    let path = format!("/jobs/redirections/{}", asked.json()["id"].as_str().context("id")?);
    let change = worked(&api, &path).await?;
    ensure!(counts(&change) == [3, 3, 0, 0] && change["projects"] == json!([own]), "{change}");
    let after = all(&api).await?;
    for (id, link) in &after {
        ensure!(id.starts_with("OWN") == (link["title"] == "New"), "{link}");
        ensure!(id.starts_with("OWN") || before[id] == *link, "{link}");
    }
    // It sees its own change, and not those of others.
    ensure!(call(&editor, Method::GET, &path, Value::Null).await?.status == 200);
    ensure!(
        call(&editor, Method::GET, "/jobs/redirections", Value::Null).await?.json()[0]["id"] == change["id"]
    );
    ensure!(call(&second, Method::GET, "/jobs/redirections", Value::Null).await?.json() == json!([]));
    let all_of = finished(&api, json!({"product": product, "patch": {"notes": "n"}})).await?;
    let others = format!("/jobs/redirections/{}", all_of["id"].as_str().context("id")?);
    for (key, path) in [(&second, &path), (&editor, &others)] {
        call(key, Method::GET, path, Value::Null).await?.problem(404, 40401);
        call(key, Method::GET, &format!("{path}/conflicts"), Value::Null).await?.problem(404, 40401);
        call(key, Method::POST, &format!("{path}/undo"), json!({})).await?.problem(404, 40401);
        call(key, Method::POST, &format!("{path}/cancel"), json!({})).await?.problem(404, 40401);
    }
    // A link that has left the project is not its own to restore. The change of the whole account is taken back first.
    let undo_all = call(&api.key, Method::POST, &format!("{others}/undo"), json!({})).await?;
    ensure!(undo_all.status == 201, "{undo_all:?}");
    work_all(&api).await?;
    ensure!(all(&api).await? == after);
    let undone = call(&editor, Method::POST, &format!("{path}/undo"), json!({"strict": true})).await?;
    ensure!(undone.status == 201, "{undone:?}");
    work_all(&api).await?;
    ensure!(all(&api).await? == before);
    Ok(())
}

async fn who_is_confined_later_does_not_see_what_it_did_before(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let (own, other) = (project(&api).await?, project(&api).await?);
    links(&api, &product, "OWN", 2, &json!({"scopes": {"users": [], "projects": [own]}})).await?;
    links(&api, &product, "FREE", 2, &json!({})).await?;
    let (id, editor) = machine(&api, "editor", json!({})).await?;
    let body = json!({"product": product, "patch": {"title": "New"}});
    let asked = api.call_as(&editor, Method::POST, "/jobs/redirections", Some(body)).await?.must_be(201)?;
    let path = format!("/jobs/redirections/{}", asked.json()["id"].as_str().context("id")?);
    ensure!(counts(&worked(&api, &path).await?) == [4, 4, 0, 0]);
    ensure!(api.call_as(&editor, Method::GET, &path, None).await?.status == 200);
    // Of two projects: then the operator has the same name in the list as before.
    let confined = json!({"conditions": [format!("project={own}"), format!("project={other}")]});
    api.put(&format!("{}/{id}", accesses(&api)), confined).await?.must_be(200)?;
    let after = all(&api).await?;
    let listed = api.call_as(&editor, Method::GET, "/jobs/redirections", None).await?;
    ensure!(listed.status == 200 && listed.json() == json!([]), "{listed:?}");
    for (method, path, body) in [
        (Method::GET, path.clone(), None),
        (Method::GET, format!("{path}/conflicts"), None),
        (Method::POST, format!("{path}/cancel"), None),
        (Method::POST, format!("{path}/undo"), Some(json!({}))),
    ] {
        api.call_as(&editor, method, &path, body).await?.problem(404, 40401);
    }
    work_all(&api).await?;
    ensure!(all(&api).await? == after, "it undid what it cannot reach");
    Ok(())
}

async fn a_change_waits_for_a_second_operator(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 2, &json!({})).await?;
    set_approval(&api, true).await?;
    let (_, editor) = machine(&api, "editor", json!({})).await?;
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    let (path, change) = ask(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    ensure!(change["status"] == "awaitingApproval", "{change}");
    let waiting = worked(&api, &path).await?;
    ensure!(waiting["status"] == "awaitingApproval" && counts(&waiting)[0] == 0, "{waiting}");
    let approve = format!("{path}/approve");
    let faults = api.call(Method::POST, &approve, None).await?.problem(403, 40301);
    ensure!(faults[0].contains("your own"), "{faults:?}");
    // With another key of the same operator, neither.
    let key = api.create("/keys", json!({"label": "second"})).await?;
    let key = key["apiKey"].as_str().context("apiKey")?;
    api.call_as(key, Method::POST, &approve, None).await?.problem(403, 40301);
    let rows = api.fingerprint().await?;
    api.call_as(&viewer, Method::POST, &approve, None).await?.problem(403, 40301);
    api.call_as(&api.other_key, Method::POST, &approve, None).await?.problem(404, 40401);
    ensure!(api.fingerprint().await? == rows, "a refusal changed something");
    let approved = api.call_as(&editor, Method::POST, &approve, None).await?;
    ensure!(approved.status == 202 && approved.bytes.is_empty(), "{approved:?}");
    api.call_as(&editor, Method::POST, &approve, None).await?.problem(409, 40901);
    let change = worked(&api, &path).await?;
    ensure!(change["status"] == "complete" && change["approvedBy"].is_string(), "{change}");
    ensure!(change["approvedBy"] != change["createdBy"], "{change}");
    ensure!(counts(&change) == [2, 2, 0, 0], "{change}");

    // An undo waits, too; one that nobody wants is cancelled.
    let undo = api.post(&format!("{path}/undo"), json!({})).await?.json();
    ensure!(undo["status"] == "awaitingApproval", "{undo}");
    let undo = format!("/jobs/redirections/{}", undo["id"].as_str().context("id")?);
    ensure!(api.call(Method::POST, &format!("{undo}/cancel"), None).await?.status == 202);
    api.call_as(&editor, Method::POST, &format!("{undo}/approve"), None).await?.problem(409, 40901);
    // What waits goes on waiting when the setting is turned off; what is new does not.
    let (waiting, _) = ask(&api, json!({"product": product, "patch": {"title": "Next"}})).await?;
    set_approval(&api, false).await?;
    ensure!(worked(&api, &waiting).await?["status"] == "awaitingApproval");
    finished(&api, json!({"product": product, "patch": {"title": "At once"}})).await?;
    Ok(())
}

async fn what_is_approved_is_what_was_asked_for(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 3, &json!({})).await?;
    set_approval(&api, true).await?;
    let (_, editor) = machine(&api, "editor", json!({})).await?;
    let (path, _) = ask(&api, json!({"product": product, "patch": {"title": "New"}, "expect": 3})).await?;
    ensure!(api.delete("/redirections/A0").await?.status == 200);
    let approve = format!("{path}/approve");
    let faults = api.call_as(&editor, Method::POST, &approve, None).await?.problem(409, 40901);
    ensure!(faults[0].contains('3') && faults[0].contains('2'), "{faults:?}");
    // Without a number, more links than were counted are refused: whoever approves has not seen them.
    let tagged = json!({"defaultRedirectUrl": "https://example.com/before", "tags": ["old"]});
    ensure!(api.put("/redirections/A1", tagged.clone()).await?.status == 200);
    let (few, change) = ask(&api, json!({"filter": "tags=old", "patch": {"notes": "new"}})).await?;
    ensure!(change["progress"]["links"] == 1, "{change}");
    ensure!(api.put("/redirections/A2", tagged).await?.status == 200);
    let faults =
        api.call_as(&editor, Method::POST, &format!("{few}/approve"), None).await?.problem(409, 40901);
    ensure!(faults[0].contains('1') && faults[0].contains('2'), "{faults:?}");
    // A strict undo, likewise.
    let (other, _) = ask(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    ensure!(api.call_as(&editor, Method::POST, &format!("{other}/approve"), None).await?.status == 202);
    ensure!(worked(&api, &other).await?["status"] == "complete");
    let undo = api.post(&format!("{other}/undo"), json!({"strict": true})).await?.json();
    ensure!(api.delete("/redirections/A1").await?.status == 200);
    let approve = format!("/jobs/redirections/{}/approve", undo["id"].as_str().context("id")?);
    api.call_as(&editor, Method::POST, &approve, None).await?.problem(409, 40901);
    Ok(())
}

async fn what_nobody_approves_is_cancelled_after_thirty_days(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 2, &json!({})).await?;
    let state = &api.made.app.link_changes;
    set_approval(&api, true).await?;
    let (_, editor) = machine(&api, "editor", json!({})).await?;
    let body = json!({"product": product, "patch": {"title": "New"}});
    let (approved, _) = ask(&api, body.clone()).await?;
    let (forgotten, _) = ask(&api, body).await?;
    let approve = |path: &str| format!("{path}/approve");
    ensure!(api.call_as(&editor, Method::POST, &approve(&approved), None).await?.status == 202);
    api.made.clock.advance(APPROVAL_MS - 1_000);
    ensure!(purge::give_up(state).await? == 0, "its time is not over");
    api.made.clock.advance(2_000);
    ensure!(purge::give_up(state).await? == 1 && purge::give_up(state).await? == 0);
    let change = api.get(&forgotten).await?.json();
    ensure!(change["status"] == "cancelled" && change["completedAt"].is_i64(), "{change}");
    ensure!(change["message"].is_string() && change.get("undoUntil").is_none(), "{change}");
    api.call_as(&editor, Method::POST, &approve(&forgotten), None).await?.problem(409, 40901);
    api.post(&format!("{forgotten}/undo"), json!({})).await?.problem(409, 40901);
    ensure!(worked(&api, &approved).await?["status"] == "complete");
    Ok(())
}

async fn another_account_sees_and_changes_nothing(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 2, &json!({"title": "Old"})).await?;
    let (path, _) = ask(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    let others = async |method: Method, path: &str, body: Option<Value>| {
        api.call_as(&api.other_key, method, path, body).await
    };
    let rows = api.fingerprint().await?;
    ensure!(others(Method::GET, "/jobs/redirections", None).await?.json() == json!([]));
    for (method, path, body) in [
        (Method::GET, path.clone(), None),
        (Method::GET, format!("{path}/conflicts"), None),
        (Method::POST, format!("{path}/cancel"), None),
        (Method::POST, format!("{path}/approve"), None),
        (Method::POST, format!("{path}/undo"), Some(json!({}))),
    ] {
        others(method, &path, body).await?.problem(404, 40401);
    }
    for conditions in [json!({"product": product}), json!({"filter": "createdAt>0"}), json!({"q": "old"})] {
        let mut body = json!({"patch": {"title": "Theirs"}, "dryRun": true});
        body.as_object_mut().context("object")?.extend(conditions.as_object().context("object")?.clone());
        let seen = others(Method::POST, "/jobs/redirections", Some(body)).await?.json();
        ensure!(seen["links"] == 0 && seen["sample"] == json!([]), "{conditions}: {seen}");
    }
    let body = json!({"domain": "tn.gg", "patch": {"title": "Theirs"}});
    others(Method::POST, "/jobs/redirections", Some(body)).await?.problem(400, 40001);
    ensure!(api.fingerprint().await? == rows, "another account changed something");
    Ok(())
}
