//! Claims that end, and domains that another account gets.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use domains::{
    service::release::{self, Released},
    store::claims,
    worker,
};
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::{
    short_url::Host,
    time::{Clock as _, UnixMillis},
};
use tests::db::Engine;

use super::{Answer, HOUR_MS, PAUSE_MS, Setting, certificates::now_ms};
use crate::store::schema::run;

crate::on_both_engines!(
    a_claim_that_is_not_proven_ends_after_a_week,
    claims_of_many_accounts_end_in_the_order_of_their_checks,
    of_two_proofs_at_one_moment_one_wins,
    a_domain_that_was_lost_for_a_month_is_won_without_its_links,
    a_released_domain_goes_to_whoever_proves_it,
    no_clock_of_a_control_ends_a_proof_or_a_claim,
);

const DAY_MS: i64 = 24 * HOUR_MS;

impl Setting {
    /// The other account claims a host.
    async fn claim_as_other(&self, host: &str) -> Result<Answer> {
        let body = Some(json!({"host": host}));
        self.api.call_as(&self.api.other_key, Method::POST, &self.others_path(), body).await
    }

    /// The other account claims a host and proves it.
    async fn prove_as_other(&self, host: &str) -> Result<()> {
        self.publish(&self.claim_as_other(host).await?.json())?;
        self.pass(PAUSE_MS).await?;
        let verify = format!("{}/{host}/verify", self.others_path());
        let proven = self.api.call_as(&self.api.other_key, Method::POST, &verify, None).await?;
        ensure!(proven.status == 200 && proven.json()["state"] == "verified", "{proven:?}");
        ensure!(proven.json()["robots"] == "none", "{proven:?}");
        Ok(())
    }

    /// The other account makes a link.
    async fn link_as_other(&self, host: &str, short_id: &str) -> Result<Answer> {
        let key = &self.api.other_key;
        let thng = self.api.call_as(key, Method::POST, "/thngs", Some(json!({"name": "t"}))).await?.json();
        let body = json!({"platformId": thng["id"], "defaultRedirectUrl": "https://example.com/",
            "shortId": short_id, "shortDomain": host});
        self.api.call_as(key, Method::POST, "/redirections", Some(body)).await
    }

    async fn delete_link(&self, host: &str, short_id: &str) -> Result<()> {
        let link = format!("/redirections/{short_id}?domain={host}");
        self.api.delete(&link).await?.must_be(200)?;
        Ok(())
    }

    /// The newest entry of our trail about short domains.
    async fn noted(&self) -> Result<Value> {
        Ok(self.api.get("/audit?filter=resource=shortDomain").await?.json()[0].take())
    }
}

async fn behind(all: &Setting, sql: &str) -> Result<()> {
    run(&all.api.made.db.location, &[sql.to_owned()]).await
}

async fn a_claim_that_is_not_proven_ends_after_a_week(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    all.prove("kept.example").await?;
    let claim = all.claim("go.example").await?;
    let at = |name: &str| claim[name].as_i64().context("a time");
    ensure!(at("endsAt")? - at("createdAt")? == 7 * DAY_MS, "{claim}");
    all.work(7 * DAY_MS - HOUR_MS).await?;
    ensure!(all.read("go.example").await?["state"] == "pending");
    all.work(2 * HOUR_MS).await?;
    all.api.get(&format!("{}/go.example", all.path())).await?.problem(404, 40401);
    let noted = all.noted().await?;
    ensure!(noted["actorType"] == "platform" && noted["before"]["state"] == "pending", "{noted}");
    let quotas = all.api.get(&format!("/accounts/{}/quotas", all.api.made.account)).await?.json();
    ensure!(quotas["shortDomains"]["used"] == 1, "{quotas}");
    ensure!(all.read("kept.example").await?.get("endsAt").is_none());
    let again = all.claim("go.example").await?;
    ensure!(again["record"]["value"] != claim["record"]["value"], "{again}");
    Ok(())
}

async fn claims_of_many_accounts_end_in_the_order_of_their_checks(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let host: Host = "go.example".parse()?;
    ensure!(all.claim_as_other(host.as_str()).await?.status == 201);
    all.pass(PAUSE_MS).await?;
    all.claim(host.as_str()).await?;
    let now = UnixMillis(now_ms()?);
    // One that was checked a moment ago is spared.
    for (most, until, status) in [(2, now.0, 200), (1, now.0 - DAY_MS, 200), (1, now.0, 404)] {
        let mut tx = all.api.made.app.core.db.begin(&Ctx::default()).await?;
        claims::end_surplus(&mut tx, &host, most, UnixMillis(until), now).await?;
        tx.commit().await?;
        all.work(0).await?;
        let theirs = format!("{}/{host}", all.others_path());
        let read = all.api.call_as(&all.api.other_key, Method::GET, &theirs, None).await?;
        ensure!(read.status == status, "{most}, {until}: {read:?}");
        ensure!(all.read(host.as_str()).await?["state"] == "pending");
    }
    Ok(())
}

async fn of_two_proofs_at_one_moment_one_wins(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let host = "go.example";
    let claims = [all.claim(host).await?, all.claim_as_other(host).await?.json()];
    let texts: Vec<&str> = claims.iter().filter_map(|claim| claim["record"]["value"].as_str()).collect();
    all.dns.set(&format!("_waymark.{host}"), &texts);
    all.pass(PAUSE_MS).await?;
    let [ours, theirs] = [all.path(), all.others_path()].map(|path| format!("{path}/{host}/verify"));
    let (ours, theirs) = tokio::join!(
        all.api.call(Method::POST, &ours, None),
        all.api.call_as(&all.api.other_key, Method::POST, &theirs, None)
    );
    let mut found = [ours?.status.as_u16(), theirs?.status.as_u16()];
    found.sort_unstable();
    ensure!(found == [200, 409], "{found:?}");
    Ok(())
}

async fn a_domain_that_was_lost_for_a_month_is_won_without_its_links(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let host = "go.example";
    all.prove(host).await?;
    let path = format!("{}/{host}", all.path());
    ensure!(all.api.put(&path, json!({"robots": "all"})).await?.status == 200);
    ensure!(all.link(host, "A").await?.status == 200);
    all.dns.set(&format!("_waymark.{host}"), &[]);
    // Also of an account that is out of service.
    behind(&all, "UPDATE accounts SET suspended_at = 1").await?;
    for _ in 0..3 {
        all.work(27 * HOUR_MS).await?;
    }
    behind(&all, "UPDATE accounts SET suspended_at = NULL").await?;
    let lost = all.read(host).await?;
    let at = |name: &str| lost[name].as_i64().context("a time");
    ensure!(lost["state"] == "unproven" && at("opensAt")? - at("unprovenSince")? == 30 * DAY_MS, "{lost}");
    all.delete_link(host, "A").await?;
    all.work(7 * DAY_MS).await?;
    // The clock of this process opens nothing.
    all.api.made.clock.advance(23 * DAY_MS);
    all.claim_as_other(host).await?.problem(409, 40901);
    behind(&all, "UPDATE domain_claims SET lost_until = lost_until - 2592000000").await?;
    all.prove_as_other(host).await?;

    ensure!(all.api.get(&all.path()).await?.json() == json!(["tn.gg"]));
    let ours = all.read(host).await?;
    ensure!(ours["state"] == "refused" && ours["endsAt"].is_i64(), "{ours}");
    let proven: Vec<bool> = all.events().await?.into_iter().map(|(_, is_verified)| is_verified).collect();
    ensure!(proven == [true, false, false, true], "{proven:?}");
    // When it was lost, a week later, and when another account won it.
    ensure!(all.api.fingerprint().await?.get("mails").context("mails")?.len() == 3);
    // Our trail does not show who of the other account asked.
    let noted = all.noted().await?;
    ensure!(noted["actorType"] == "platform" && noted["after"]["state"] == "refused", "{noted}");
    // A short id that was given out is not given out again.
    all.link_as_other(host, "A").await?.problem(409, 40902);
    ensure!(all.link_as_other(host, "B").await?.status == 200);
    Ok(())
}

async fn a_released_domain_goes_to_whoever_proves_it(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let host = "go.example";
    all.prove(host).await?;
    ensure!(all.link(host, "A").await?.status == 200);
    let release = async |host: &str| {
        let now = all.api.made.clock.now();
        let ctx = Ctx::of_command("platform release-domain", now);
        release::release(&all.api.made.app.core.db, &ctx, host, [7; 16], now).await
    };
    let refused = release(host).await;
    ensure!(refused.is_err_and(|error| error.to_string().contains("has links")));
    all.delete_link(host, "A").await?;
    ensure!(release(host).await?.1 == Released::Open);
    ensure!(all.events().await?.last() == Some(&(host.to_owned(), false)));
    let noted = all.noted().await?;
    ensure!(noted["actorType"] == "commandLine" && noted["after"]["state"] == "unproven", "{noted}");
    // What proved it before proves it no longer.
    ensure!(all.verify(host).await?.json()["state"] == "unproven");
    all.prove_as_other(host).await?;
    ensure!(all.read(host).await?["state"] == "refused");

    ensure!(release("tn.gg").await?.1 == Released::Removed);
    ensure!(all.api.get(&all.path()).await?.json() == json!([]));
    ensure!(release("tn.gg").await.is_err());
    Ok(())
}

async fn no_clock_of_a_control_ends_a_proof_or_a_claim(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let (proven, claim) = (all.prove("kept.example").await?, all.claim("go.example").await?);
    for (shown, name) in [(&proven, "verifiedAt"), (&claim, "createdAt")] {
        let at = shown[name].as_i64().context("a time")?;
        ensure!((now_ms()? - at).abs() < HOUR_MS, "the clock of the database: {shown}");
    }
    all.dns.set("_waymark.kept.example", &[]);
    let work = async || anyhow::Ok(worker::work(&all.api.made.app.domains).await?);
    for days in [400, -800] {
        all.api.made.clock.advance(days * DAY_MS);
        ensure!(work().await? == 0, "{days} days later nothing is due");
    }
    let later =
        "UPDATE domain_claims SET next_check = next_check + 31536000000, asked_at = asked_at + 31536000000";
    behind(&all, later).await?;
    ensure!(work().await? == 2, "what a wrong clock put off for a year is due");
    ensure!(work().await? == 0);
    ensure!(all.read("kept.example").await?["state"] == "verified");
    let verify = format!("{}/go.example/verify", all.path());
    let asked = all.api.call(Method::POST, &verify, None).await?;
    ensure!(asked.status == 200 && asked.json()["state"] == "pending", "{asked:?}");
    Ok(())
}
