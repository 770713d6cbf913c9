//! What is refused, and workers that lose what they hold.

use anyhow::{Result, ensure};
use axum::http::Method;
use kernel::store::Ctx;
use link_changes::{
    service::{
        accept::{MAX_KEPT, MAX_OPEN},
        steps::{self, Stepped},
    },
    store::change_leases as leases,
};
use serde_json::json;
use tests::db::Engine;

use super::{Api, all, ask, counts, finished, links, with_product, work_all, worked};
use crate::store::schema::run;

crate::on_both_engines!(
    every_fault_is_named_at_once,
    another_count_than_the_expected_one_is_refused,
    changes_under_way_are_bounded,
    former_values_of_an_account_are_bounded,
    targets_that_the_account_does_not_allow_are_refused,
    a_worker_that_lost_its_lease_changes_nothing,
    a_change_whose_links_are_not_found_in_time_goes_on_in_parts,
    a_link_that_is_changed_between_reading_and_writing_is_looked_at_again,
);

async fn every_fault_is_named_at_once(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let before = api.fingerprint().await?;
    let body = json!({"filter": "colour=red", "q": "!", "product": "x", "dryRun": "yes", "expect": -1, "limit": 5,
        "patch": {"title": 1, "defaultRedirectUrl": "javascript:alert(1)", "shortId": "A", "status": "off",
            "tags": {"add": ["a"], "remove": ["a"], "set": []}}});
    let faults = api.post("/jobs/redirections", body).await?.problem(400, 40001);
    for part in [
        "limit is not a member",
        "filter: ",
        "q must hold",
        "product: ",
        "dryRun must be",
        "expect must be",
        "patch.title must be",
        "patch.defaultRedirectUrl must be",
        "patch.shortId is not",
        "patch.status must be",
        "patch.tags adds and removes a",
        "patch.tags.set is not",
    ] {
        ensure!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
    }
    for (body, part) in [
        (json!({"patch": {"title": "a"}}), "is required"),
        (json!({"filter": "tags=a"}), "patch is required"),
        (json!({"filter": "tags=a", "patch": {}}), "must change something"),
        (json!({"filter": "tags=a", "patch": {"title": "a"}}), "No link is found"),
        (json!({"domain": "other.gg", "patch": {"title": "a"}}), "not a short domain of this account"),
        (json!([]), "must be a JSON object"),
    ] {
        let faults = api.post("/jobs/redirections", body.clone()).await?.problem(400, 40001);
        ensure!(faults.iter().any(|fault| fault.contains(part)), "{body}: {faults:?}");
    }
    ensure!(api.fingerprint().await? == before, "a refusal changed something");
    let unknown = "/jobs/redirections/UKXAGyEf8SQ5eTDmVgGpHqAa";
    for path in [unknown, "/jobs/redirections/x"] {
        api.get(path).await?.problem(404, 40401);
        let faults = json!({"strict": "yes", "force": true});
        let faults = api.post(&format!("{path}/undo"), faults).await?.problem(400, 40001);
        ensure!(faults.len() == 2, "{faults:?}");
    }
    Ok(())
}

async fn another_count_than_the_expected_one_is_refused(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 4, &json!({})).await?;
    let before = api.fingerprint().await?;
    for dry_run in [true, false] {
        let body = json!({"product": product, "patch": {"title": "New"}, "expect": 7, "dryRun": dry_run});
        let faults = api.post("/jobs/redirections", body).await?.problem(409, 40901);
        ensure!(
            faults[0].contains("7 links were expected") && faults[0].contains("4 are found"),
            "{faults:?}"
        );
    }
    ensure!(api.fingerprint().await? == before, "a refusal changed something");
    let change = finished(&api, json!({"product": product, "patch": {"title": "New"}, "expect": 4})).await?;
    ensure!(counts(&change) == [4, 4, 0, 0] && change["expect"] == 4, "{change}");
    Ok(())
}

async fn changes_under_way_are_bounded(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 1, &json!({})).await?;
    let body = json!({"product": product, "patch": {"title": "New"}});
    let (first, _) = ask(&api, body.clone()).await?;
    for _ in 1..MAX_OPEN {
        ask(&api, body.clone()).await?;
    }
    api.post("/jobs/redirections", body.clone()).await?.problem(429, 42901);
    ensure!(api.call(Method::POST, &format!("{first}/cancel"), None).await?.status == 202);
    ask(&api, body).await?;
    Ok(())
}

async fn former_values_of_an_account_are_bounded(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 2, &json!({})).await?;
    let change = finished(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    let many = MAX_KEPT - 1;
    let doc = if engine == Engine::Sqlite {
        format!("json_set(doc, '$.changed', {many})")
    } else {
        format!("jsonb_set(doc, '{{changed}}', '{many}')")
    };
    run(&api.made.db.location, &[format!("UPDATE link_changes SET doc = {doc}")]).await?;
    let body = json!({"product": product, "patch": {"notes": "more"}});
    let faults = api.post("/jobs/redirections", body.clone()).await?.problem(409, 40901);
    ensure!(faults[0].contains(&format!("former values of {many} links are kept")), "{faults:?}");
    // A dry run keeps nothing.
    let mut dry_run = body.clone();
    dry_run["dryRun"] = json!(true);
    ensure!(api.post("/jobs/redirections", dry_run).await?.status == 200);
    // What is given back is not kept any more.
    let undo = format!("/jobs/redirections/{}/undo", change["id"].as_str().unwrap_or_default());
    ensure!(api.post(&undo, json!({})).await?.status == 201);
    work_all(&api).await?;
    finished(&api, body).await?;
    Ok(())
}

async fn targets_that_the_account_does_not_allow_are_refused(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 2, &json!({})).await?;
    let uri = format!("/accounts/{}", api.made.account);
    let hosts = json!({"targetHosts": ["example.com"]});
    ensure!(api.put(&uri, hosts).await?.status == 200);
    let body = json!({"product": product, "patch": {"defaultRedirectUrl": "https://elsewhere.example/",
        "endedUrl": "https://elsewhere.example/ended"}});
    let faults = api.post("/jobs/redirections", body).await?.problem(400, 40001);
    ensure!(faults.len() == 2, "{faults:?}");
    for (fault, member) in faults.iter().zip(["patch.defaultRedirectUrl", "patch.endedUrl"]) {
        ensure!(fault.starts_with(member), "{faults:?}");
    }
    Ok(())
}

async fn a_worker_that_lost_its_lease_changes_nothing(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 3, &json!({})).await?;
    let (path, _) = ask(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    let state = &api.made.app.link_changes;
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let claimed = leases::claim(&mut tx).await?;
    tx.commit().await?;
    let Some(mut stale) = claimed else { anyhow::bail!("nothing was claimed") };
    run(&api.made.db.location, &["UPDATE link_changes SET lease_until = 0".to_owned()]).await?;
    let change = worked(&api, &path).await?;
    ensure!(counts(&change) == [3, 3, 0, 0], "{change}");
    let rows = api.fingerprint().await?;
    ensure!(steps::step(state, &mut stale).await? == Stepped::Lost);
    ensure!(api.fingerprint().await? == rows, "a worker without a lease wrote something");
    Ok(())
}

async fn a_change_whose_links_are_not_found_in_time_goes_on_in_parts(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    for (prefix, title) in [("A", "Old"), ("B", "Other"), ("C", "Old")] {
        links(&api, &product, prefix, 30, &json!({"title": title})).await?;
        api.made.clock.advance(1_000);
    }
    let (path, _) = ask(&api, json!({"filter": "title=Old", "patch": {"title": "New"}})).await?;
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let claimed = leases::claim(&mut tx).await?;
    tx.commit().await?;
    let Some(mut claimed) = claimed else { anyhow::bail!("nothing was claimed") };
    // As after many tries: then a step looks at the fewest links.
    claimed.failures = 20;
    let mut steps = 0;
    while steps::step(&api.made.app.link_changes, &mut claimed).await? == Stepped::Moved {
        steps += 1;
        ensure!(steps < 100, "{}", api.get(&path).await?.json());
    }
    ensure!(claimed.item.details.in_parts, "another turn would look among all links again");
    // At least one for each time at which links were made, and then the last one; on a slow machine steps have fewer links.
    ensure!(steps >= 3, "{steps} steps");
    let change = api.get(&path).await?.json();
    ensure!(change["status"] == "complete" && counts(&change) == [60, 60, 0, 0], "{change}");
    for (id, link) in all(&api).await? {
        ensure!((link["title"] == "Other") == id.starts_with('B'), "{link}");
        ensure!(link["title"] != "Old", "{link}");
    }
    Ok(())
}

async fn a_link_that_is_changed_between_reading_and_writing_is_looked_at_again(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 40, &json!({"tags": ["old"]})).await?;
    let (path, _) = ask(&api, json!({"filter": "tags=old", "patch": {"title": "New"}})).await?;
    // Others write while the worker goes on: a link without the tag any more is not changed, whoever comes first.
    let mine = json!({"defaultRedirectUrl": "https://example.com/mine", "tags": [], "title": "Mine"});
    let writes = async {
        for n in (0..40).step_by(3) {
            api.put(&format!("/redirections/A{n}"), mine.clone()).await?.must_be(200)?;
        }
        anyhow::Ok(())
    };
    let (written, change) = tokio::join!(writes, worked(&api, &path));
    written?;
    let change = change?;
    ensure!(change["status"] == "complete", "{change}");
    for (id, link) in all(&api).await? {
        let is_mine = id.strip_prefix('A').and_then(|n| n.parse::<usize>().ok()).is_some_and(|n| n % 3 == 0);
        let expected = if is_mine { "Mine" } else { "New" };
        ensure!(link["title"] == expected, "{link}");
    }
    Ok(())
}
