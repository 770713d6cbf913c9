//! Proofs that are lost, and domains that are removed.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use domains::{
    domain::claim::{Claim, Proof},
    store::claims,
};
use kernel::store::Ctx;
use redirects::store::log;
use serde_json::{Value, json};
use shared::{short_url::Host, wire::stream::Change};
use tests::db::Engine;

use super::{HOUR_MS, Setting};

crate::on_both_engines!(
    the_worker_finds_a_proof,
    a_domain_whose_proof_is_lost_keeps_its_codes,
    a_silent_host_of_a_file_is_an_outage,
    a_domain_without_codes_is_removed,
    a_removal_does_not_change_which_domain_is_first,
);

async fn the_worker_finds_a_proof(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let claim = all.claim("go.example").await?;
    ensure!(all.work(0).await? == 0, "it is too early");
    ensure!(all.work(HOUR_MS / 60 + 1).await? == 1);
    let pending = all.read("go.example").await?;
    ensure!(pending["state"] == "pending" && pending["fault"].is_string(), "{pending}");
    ensure!(all.work(0).await? == 0, "it pauses");
    all.publish(&claim)?;
    ensure!(all.work(HOUR_MS / 20).await? == 1);
    let proven = all.read("go.example").await?;
    ensure!(proven["state"] == "verified" && proven["verifiedAt"].is_i64(), "{proven}");
    ensure!(all.events().await? == [("go.example".to_owned(), true)]);
    // Every day from now on.
    ensure!(all.work(23 * HOUR_MS).await? == 0);
    ensure!(all.work(4 * HOUR_MS).await? == 1);
    let later = all.read("go.example").await?;
    ensure!(later["verifiedAt"].as_i64() > proven["verifiedAt"].as_i64(), "{later}");
    ensure!(all.events().await?.len() == 1);
    Ok(())
}

async fn a_domain_whose_proof_is_lost_keeps_its_codes(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let host = "go.example";
    let proven = all.prove(host).await?;
    ensure!(all.link(host, "A").await?.status == 200);
    all.dns.set(&format!("_waymark.{host}"), &[]);
    let mails =
        async || -> Result<usize> { Ok(all.api.fingerprint().await?.get("mails").context("mails")?.len()) };
    // Two checks without a proof may be an outage.
    for _ in 0..2 {
        ensure!(all.work(27 * HOUR_MS).await? == 1);
        let read = all.read(host).await?;
        ensure!(read["state"] == "verified" && read["fault"].is_string(), "{read}");
    }
    ensure!(all.events().await?.len() == 1 && mails().await? == 0);
    ensure!(all.work(27 * HOUR_MS).await? == 1);
    let lost = all.read(host).await?;
    ensure!(lost["state"] == "unproven" && lost["unprovenSince"].is_i64(), "{lost}");
    ensure!(all.events().await? == [(host.to_owned(), true), (host.to_owned(), false)]);
    ensure!(mails().await? == 1, "the owner is told");

    // What is there goes on and may be changed; nothing new comes.
    ensure!(all.api.get(&all.path()).await?.json() == json!(["tn.gg", host]));
    let link = format!("/redirections/A?domain={host}");
    let change = Some(json!({"defaultRedirectUrl": "https://example.com/other"}));
    ensure!(all.api.call(Method::PUT, &link, change).await?.status == 200);
    let refused = all.link(host, "B").await?.problem(409, 40901);
    ensure!(refused[0].contains("go.example is not proven any more"), "{refused:?}");
    ensure!(all.link("tn.gg", "B").await?.status == 200);
    // A link that was deleted is a new one, too.
    ensure!(all.api.delete(&link).await?.status == 200);
    let history = all.api.get(&format!("/redirections/A/history?domain={host}")).await?.json();
    let restore = async || {
        let version = json!({"version": history[1]["version"]});
        all.api.post(&format!("/redirections/A/restore?domain={host}"), version).await
    };
    let refused = restore().await?.problem(409, 40901);
    ensure!(refused[0].contains("go.example is not proven any more"), "{refused:?}");
    let listed = all.api.get(&format!("/accounts/{}/domains", all.api.made.account)).await?.json();
    ensure!(listed[1]["state"] == "unproven" && listed.as_array().map(Vec::len) == Some(2), "{listed}");
    // A check more tells nobody again.
    ensure!(all.work(27 * HOUR_MS).await? == 1);
    ensure!(all.events().await?.len() == 2 && mails().await? == 1);

    all.publish(&proven)?;
    let back = all.verify(host).await?.json();
    ensure!(back["state"] == "verified" && back.get("unprovenSince").is_none(), "{back}");
    ensure!(all.link(host, "B").await?.status == 200);
    ensure!(restore().await?.status == 200);
    ensure!(all.events().await?.last() == Some(&(host.to_owned(), true)));
    Ok(())
}

async fn a_silent_host_of_a_file_is_an_outage(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let host: Host = "go.example".parse()?;
    all.prove(host.as_str()).await?;
    // As if its file had proven it: no host leads anywhere here.
    let mut tx = all.api.made.app.core.db.begin(&Ctx::default()).await?;
    let claim = claims::find(&mut tx, all.api.made.account, &host).await?.context("claim")?;
    claims::update(&mut tx, &Claim { proof: Some(Proof::File), ..claim }).await?;
    tx.commit().await?;
    all.dns.set(&format!("_waymark.{host}"), &[]);
    for _ in 0..3 {
        ensure!(all.work(27 * HOUR_MS).await? == 1);
        let read = all.read(host.as_str()).await?;
        ensure!(read["state"] == "verified" && read["fault"].is_string(), "{read}");
    }
    Ok(())
}

/// The changes of a host in the stream to edges, in order: whether each removed it.
async fn removals_sent(all: &Setting, host: &str) -> Result<Vec<bool>> {
    let mut conn = all.api.made.app.core.db.read().await?;
    let epoch = log::load_head(&mut conn).await?.epoch;
    let events = log::list_after(&mut conn, &epoch, 0, 100).await?;
    let removed = events.into_iter().filter_map(|event| match event.change {
        Change::Domain(domain) if domain.host.as_str() == host => Some(domain.removed),
        _ => None,
    });
    Ok(removed.collect())
}

async fn a_domain_without_codes_is_removed(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let host = "go.example";
    let path = format!("{}/{host}", all.path());
    let delete = async || all.api.delete(&path).await;
    all.prove(host).await?;
    ensure!(all.link(host, "A").await?.status == 200 && all.link(host, "B").await?.status == 200);
    let faults = delete().await?.problem(409, 40901);
    ensure!(faults[0].contains("go.example has 2 short ids, and 0 that were deleted"), "{faults:?}");
    for short_id in ["A", "B"] {
        let link = format!("/redirections/{short_id}?domain={host}");
        ensure!(all.api.delete(&link).await?.status == 200);
    }
    // Their codes may be printed.
    let faults = delete().await?.problem(409, 40901);
    ensure!(faults[0].contains("0 short ids, and 2 that were deleted"), "{faults:?}");
    let given = all.api.delete(&format!("{}/tn.gg", all.path())).await?;
    ensure!(given.problem(409, 40901)[0].contains("was given to the account"));

    let other = "new.example";
    all.prove(other).await?;
    let settings = Some(json!({"robots": "all", "assetLinks": []}));
    let path = format!("{}/{other}", all.path());
    ensure!(all.api.call(Method::PUT, &path, settings).await?.status == 200);
    // Not by another account.
    let theirs = format!("{}/{other}", all.others_path());
    for account in [&path, &theirs] {
        all.api.call_as(&all.api.other_key, Method::DELETE, account, None).await?.problem(404, 40401);
    }
    let removed = all.api.delete(&path).await?;
    ensure!(removed.status == 200 && removed.bytes.is_empty(), "{removed:?}");
    ensure!(removals_sent(&all, other).await? == [false, false, true]);
    all.api.get(&path).await?.problem(404, 40401);
    all.link(other, "A").await?.problem(400, 40001);
    // It can be claimed again, under another token, and has no settings.
    let again = all.prove(other).await?;
    ensure!(again["robots"] == "none" && again.get("assetLinks").is_none(), "{again}");
    ensure!(removals_sent(&all, other).await? == [false, false, true, false]);
    let quotas = all.api.get(&format!("/accounts/{}/quotas", all.api.made.account)).await?.json();
    ensure!(quotas["shortDomains"] == json!({"own": false, "used": 2}), "{quotas}");
    let trail = all.api.get("/audit?filter=resource=shortDomain&perPage=100").await?.json();
    let is_removal = |entry: &&Value| entry["before"]["state"] == "verified" && entry.get("after").is_none();
    ensure!(trail.as_array().context("trail")?.iter().filter(is_removal).count() == 1, "{trail}");
    Ok(())
}

async fn a_removal_does_not_change_which_domain_is_first(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    for host in ["z.example", "y.example", "x.example"] {
        all.prove(host).await?;
    }
    let delete = async |host: &str| -> Result<()> {
        all.api.delete(&format!("{}/{host}", all.path())).await?.must_be(200)?;
        Ok(())
    };
    delete("z.example").await?;
    delete("y.example").await?;
    // A new one is behind those that stay, however many were removed before.
    all.prove("a.example").await?;
    ensure!(all.api.get(&all.path()).await?.json() == json!(["tn.gg", "x.example", "a.example"]));
    Ok(())
}
