//! Sign-in over the API: begin, callback, and linked identities.

mod identities;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::{Method, header};
use oidc::COOKIE;
use serde_json::json;
use shared::{id::AccountId, time::Clock};
use tests::db::{Engine, random16};

use super::site::{Answer, Site};
use crate::store::redirections::execute;

const SESSION: &str = "__Host-waymark";

fn session(answer: &Answer) -> Result<String> {
    ensure!(answer.status == 200, "{answer:?}");
    answer.cookie(SESSION).with_context(|| format!("no session: {answer:?}"))
}

async fn an_operator_signs_in_and_stays_linked(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    let answer = site.sign_in(&provider, "?returnTo=/console/things%3Fpage%3D2", "ada").await?;
    let cookie = session(&answer)?;
    let sets: Vec<&str> =
        answer.headers.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok()).collect();
    ensure!(sets.len() == 2 && sets.iter().any(|set| set.contains("SameSite=Strict")), "{sets:?}");
    ensure!(answer.cookie(COOKIE).as_deref() == Some(&format!("{COOKIE}=")), "it is taken back: {sets:?}");
    ensure!(answer.text.contains("content=\"0;url=/console/things?page=2\""), "{}", answer.text);
    ensure!(answer.header(header::CACHE_CONTROL)? == "no-store");
    ensure!(answer.header(header::CONTENT_SECURITY_POLICY)?.contains("default-src 'none'"));
    ensure!(!answer.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "{:?}", answer.headers);

    let who = site.console(Method::GET, "/console/api/session", &cookie).await?.json()?;
    ensure!(who["operator"]["email"] == "ada@example.com", "{who}");
    let linked = site.console(Method::GET, "/console/api/identities", &cookie).await?.json()?;
    let [identity] = linked.as_array().context("a list")?.as_slice() else { anyhow::bail!("{linked}") };
    ensure!(identity["issuer"] == provider.issuer() && identity["subject"] == "ada", "{identity}");
    ensure!(identity["email"] == "ada@example.com", "{identity}");

    // By the link, whatever the address is now, and as the provider calls it.
    execute(
        &site.made,
        "UPDATE operators SET email = 'countess@example.com' WHERE email = 'ada@example.com'",
    )
    .await?;
    site.pass(Duration::from_secs(60))?;
    let again = session(&site.sign_in(&provider, "", "ada").await?)?;
    let linked = site.console(Method::GET, "/console/api/identities", &again).await?.json()?;
    ensure!(linked[0]["createdAt"] == identity["createdAt"], "{linked}");
    ensure!(linked[0]["lastUsedAt"].as_i64() > identity["lastUsedAt"].as_i64(), "{linked}");
    ensure!(site.count("operator_identities").await? == 1);

    // The operator unlinks it, and nobody else's.
    let id = identity["id"].as_str().context("id")?;
    site.add_operator(site.made.account, "eve@example.com").await?;
    let eve = session(&site.sign_in(&provider, "", "eve").await?)?;
    let uri = format!("/console/api/identities/{id}");
    for (uri, cookie) in [(uri.as_str(), &eve), ("/console/api/identities/x", &again)] {
        let answer = site.console(Method::DELETE, uri, cookie).await?;
        ensure!(answer.status == 404, "{uri}: {answer:?}");
    }
    ensure!(site.send(Method::DELETE, &uri, &[("sec-fetch-site", "same-origin")]).await?.status == 401);
    ensure!(site.console(Method::DELETE, &uri, &again).await?.status == 200);
    ensure!(site.console(Method::GET, "/console/api/session", &again).await?.status == 200, "sessions stay");
    let refused = site.sign_in(&provider, "", "ada").await?;
    ensure!(refused.status == 403 && refused.text.contains("No operator has this identity"), "{refused:?}");

    // The trail has all of it.
    let trail = site.own(Method::GET, "/audit?perPage=100").await?.json()?;
    let entries: Vec<_> = trail.as_array().context("a list")?.iter().collect();
    let of = |kind: &str| entries.iter().filter(|entry| entry["resource"] == kind).count();
    ensure!(of("identity") == 3, "two links, and one that was removed: {trail}");
    ensure!(of("session") == 3, "three sign-ins: {trail}");
    let callback = entries.iter().filter(|entry| entry["operation"] == "GET /console/api/oidc/callback");
    ensure!(callback.count() == 5, "{trail}");
    Ok(())
}

async fn a_sign_in_that_cannot_be_trusted_begins_no_session(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    let refused = async |what: &str, status: u16, says: &str, answer: Answer| -> Result<()> {
        ensure!(answer.status == status && answer.text.contains(says), "{what}: {answer:?}");
        ensure!(answer.header(header::CONTENT_TYPE)?.starts_with("text/html"), "{what}: {answer:?}");
        ensure!(answer.cookie(SESSION).is_none(), "{what}: {answer:?}");
        ensure!((status == 503) == answer.headers.contains_key(header::RETRY_AFTER), "{what}: {answer:?}");
        ensure!(site.count("operator_sessions").await? == 0, "{what}");
        ensure!(site.count("operator_identities").await? == 0, "{what}");
        Ok(())
    };

    let begun = site.begin("").await?;
    let back = site.visit(&provider, &begun, "ada").await?;
    let other = site.begin("").await?;
    refused("no cookie", 403, "has not begun", site.open_callback(&back, None).await?).await?;
    let foreign = format!("{COOKIE}=AAAA");
    refused("odd cookie", 403, "has not begun", site.open_callback(&back, Some(&foreign)).await?).await?;
    let answer = site.open_callback(&back, Some(&other.cookie)).await?;
    refused("the cookie of another browser", 403, "another sign-in", answer).await?;
    let mut changed = back.clone();
    let query = back.query().context("query")?.replace("state=", "state=x");
    changed.set_query(Some(&query));
    refused("state", 403, "another sign-in", site.open_callback(&changed, Some(&begun.cookie)).await?)
        .await?;
    site.pass(oidc::LIFETIME)?;
    refused("expired", 403, "10 minutes", site.open_callback(&back, Some(&begun.cookie)).await?).await?;

    for (how, status, says) in [
        ("audience", 403, "cannot be trusted"),
        ("nonce", 403, "cannot be trusted"),
        ("foreign-key", 403, "cannot be trusted"),
        ("unknown-key", 403, "cannot be trusted"),
        ("unsigned", 403, "cannot be trusted"),
        ("endless", 503, "does not answer as it should"),
    ] {
        provider.spoil(how).await?;
        refused(how, status, says, site.sign_in(&provider, "", "ada").await?).await?;
    }
    provider.spoil("").await?;
    for (name, says) in [
        ("ada.unverified", "not verified"),
        ("ada.silent", "no e-mail address"),
        ("stranger", "No operator has this identity"),
    ] {
        refused(name, 403, says, site.sign_in(&provider, "", name).await?).await?;
    }
    // Somebody who was invited and has not accepted, and a program.
    for change in ["invitation = '0'", "kind = 'machine'"] {
        let email = format!("{}@example.com", &change[..4]);
        site.add_operator(site.made.account, &email).await?;
        let sql = format!("UPDATE operators SET {change} WHERE email = '{email}'");
        execute(&site.made, &sql).await?;
        let name = &change[..4];
        refused(change, 403, "No operator", site.sign_in(&provider, "", name).await?).await?;
    }

    // It works once: not again, with the code still in the URL or with another sign-in.
    let begun = site.begin("").await?;
    let back = site.visit(&provider, &begun, "ada").await?;
    session(&site.open_callback(&back, Some(&begun.cookie)).await?)?;
    let answer = site.open_callback(&back, Some(&begun.cookie)).await?;
    ensure!(answer.status == 403 && answer.text.contains("used already"), "{answer:?}");
    let other = site.begin("").await?;
    let state = super::provider::parameter(&other.url, "state").context("state")?;
    let own = super::provider::parameter(&back, "state").context("state")?;
    let mut replayed = back.clone();
    replayed.set_query(Some(&back.query().context("query")?.replace(&own, &state)));
    let answer = site.open_callback(&replayed, Some(&other.cookie)).await?;
    ensure!(answer.status == 403 && answer.text.contains("does not accept this answer"), "{answer:?}");
    ensure!(answer.cookie(SESSION).is_none() && site.count("operator_sessions").await? == 1);
    Ok(())
}

async fn whoever_is_in_several_accounts_names_one(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    let other = site.add_account().await?;
    // An address differs in case.
    site.add_operator(other, "Ada@Example.com").await?;
    let refused = site.sign_in(&provider, "", "ada").await?;
    ensure!(refused.status == 403 && refused.text.contains("name the account"), "{refused:?}");
    for (account, email) in [(other, "Ada@Example.com"), (site.made.account, "ada@example.com")] {
        let cookie = session(&site.sign_in(&provider, &format!("?account={account}"), "ada").await?)?;
        let who = site.console(Method::GET, "/console/api/session", &cookie).await?.json()?;
        ensure!(
            who["operator"]["email"] == email && who["operator"]["account"] == account.to_string(),
            "{who}"
        );
    }
    // Linked in both.
    let refused = site.sign_in(&provider, "", "ada").await?;
    ensure!(refused.status == 403 && refused.text.contains("name the account"), "{refused:?}");
    let third = AccountId::new(site.clock.now().0, random16()?);
    let refused = site.sign_in(&provider, &format!("?account={third}"), "ada").await?;
    ensure!(refused.status == 403 && refused.text.contains("No operator"), "{refused:?}");
    Ok(())
}

/// Somebody else invited the address into an account first: the link there decides nothing once another account has it.
async fn a_link_does_not_decide_between_accounts(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    session(&site.sign_in(&provider, "", "ada").await?)?;
    let other = site.add_account().await?;
    site.add_operator(other, "ADA@example.com").await?;
    let refused = site.sign_in(&provider, "", "ada").await?;
    ensure!(refused.status == 403 && refused.text.contains("name the account"), "{refused:?}");
    ensure!(site.count("operator_identities").await? == 1);
    for account in [other, site.made.account] {
        let cookie = session(&site.sign_in(&provider, &format!("?account={account}"), "ada").await?)?;
        let who = site.console(Method::GET, "/console/api/session", &cookie).await?.json()?;
        ensure!(who["operator"]["account"] == account.to_string(), "{who}");
    }
    // Another operator of the same account may have the address by now.
    site.add_operator(site.made.account, "eve@example.com").await?;
    session(&site.sign_in(&provider, "", "eve").await?)?;
    execute(&site.made, "UPDATE operators SET email = 'old@example.com' WHERE email = 'eve@example.com'")
        .await?;
    site.add_operator(site.made.account, "eve@example.com").await?;
    let cookie = session(&site.sign_in(&provider, "", "eve").await?)?;
    let who = site.console(Method::GET, "/console/api/session", &cookie).await?.json()?;
    ensure!(who["operator"]["email"] == "old@example.com", "{who}");
    // Who is known by the link needs no address.
    execute(&site.made, "UPDATE operator_identities SET subject = 'eve.silent' WHERE subject = 'eve'")
        .await?;
    session(&site.sign_in(&provider, "", "eve.silent").await?)?;
    Ok(())
}

/// An account that lets nobody in by the provider.
async fn an_account_may_refuse_the_provider(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    let cookie = session(&site.sign_in(&provider, "", "ada").await?)?;
    let account = format!("/accounts/{}", site.made.account);
    let set = async |value: bool| {
        let body = json!({"providerSignIn": value});
        site.own_with(Method::PUT, &account, body).await
    };
    ensure!(site.own(Method::GET, &account).await?.json()?["providerSignIn"] == true);
    let changed = set(false).await?;
    ensure!(changed.status == 200 && changed.json()?["providerSignIn"] == false, "{changed:?}");
    ensure!(site.console(Method::GET, "/console/api/session", &cookie).await?.status == 401, "it has ended");
    site.add_operator(site.made.account, "eve@example.com").await?;
    for (query, name) in [("", "ada"), ("", "eve"), (&*format!("?account={}", site.made.account), "ada")] {
        let refused = site.sign_in(&provider, query, name).await?;
        ensure!(refused.status == 403 && refused.text.contains("lets nobody sign in so"), "{refused:?}");
    }
    ensure!(site.count("operator_identities").await? == 1, "nothing is linked");
    // Another account with the address is the only one then.
    let other = site.add_account().await?;
    site.add_operator(other, "ada@example.com").await?;
    session(&site.sign_in(&provider, "", "ada").await?)?;
    set(true).await?;
    session(&site.sign_in(&provider, "", "eve").await?)?;
    // An account that requires a second factor leaves it to the provider.
    let body = json!({"secondFactorRequired": true});
    ensure!(site.own_with(Method::PUT, &account, body).await?.status == 200);
    let cookie = session(&site.sign_in(&provider, "", "eve").await?)?;
    ensure!(site.console(Method::GET, "/console/api/products", &cookie).await?.status == 200);
    Ok(())
}

/// Who has to wait loads the page again.
async fn a_busy_server_does_not_burn_a_sign_in(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    let begun = site.begin("").await?;
    let back = site.visit(&provider, &begun, "ada").await?;
    let asked = site.made.app.oidc.provider.clone().context("no provider")?;
    let mut held = Vec::new();
    for _ in 0..oidc::SLOTS {
        held.push(asked.enter(None).await?);
    }
    let answer = site.open_callback(&back, Some(&begun.cookie)).await?;
    ensure!(answer.status == 503 && answer.text.contains("try again"), "{answer:?}");
    ensure!(answer.header(header::RETRY_AFTER)? == "1", "{answer:?}");
    held.clear();
    // Twice at once: one of them is let in.
    let (one, two) = tokio::join!(
        site.open_callback(&back, Some(&begun.cookie)),
        site.open_callback(&back, Some(&begun.cookie))
    );
    let mut statuses = [one?.status, two?.status];
    statuses.sort_unstable();
    ensure!(statuses == [200, 403], "{statuses:?}");
    ensure!(site.count("operator_sessions").await? == 1);
    Ok(())
}

/// Letters that fold to others are other mailboxes, on both databases.
async fn an_address_with_an_odd_letter_is_another(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    site.add_operator(site.made.account, "mark@example.com").await?;
    // The sign of the unit kelvin, which is a small k in lower case.
    let refused = site.sign_in(&provider, "", "mar%E2%84%AA").await?;
    ensure!(refused.status == 403 && refused.text.contains("No operator has this identity"), "{refused:?}");
    session(&site.sign_in(&provider, "", "MARK").await?)?;
    Ok(())
}

async fn the_beginning_is_a_page_of_this_site(engine: Engine) -> Result<()> {
    let (_provider, site) = Site::with_provider(engine).await?;
    let begin = "/console/api/oidc/begin";
    for (site_of, status) in
        [("none", 303), ("same-origin", 303), ("same-site", 303), ("cross-site", 403), ("odd", 403)]
    {
        let answer = site.send(Method::GET, begin, &[("sec-fetch-site", site_of)]).await?;
        ensure!(answer.status == status, "{site_of}: {answer:?}");
        ensure!((status == 303) == answer.cookie(COOKIE).is_some(), "{site_of}: {answer:?}");
    }
    // Other operations of the console stay closed to them.
    for site_of in ["none", "same-site", "cross-site"] {
        let answer = site.send(Method::GET, "/console/api/session", &[("sec-fetch-site", site_of)]).await?;
        ensure!(answer.status == 403, "{site_of}: {answer:?}");
    }
    let key = site.send(Method::GET, begin, &[("sec-fetch-site", "none"), ("authorization", "K")]).await?;
    ensure!(key.status == 403, "no key is taken: {key:?}");

    // Every fault at once; no redirect to others.
    let faults = site.send(Method::GET, &format!("{begin}?account=x&returnTo=//evil.example"), &[]).await?;
    let body = faults.json()?;
    ensure!(faults.status == 400 && body["code"] == 40003, "{faults:?}");
    ensure!(body["errors"].as_array().is_some_and(|errors| errors.len() == 2), "{body}");
    let page = site.open_begin("?returnTo=https://evil.example/").await?;
    ensure!(page.status == 400 && page.text.contains("returnTo must be a path"), "{page:?}");
    ensure!(page.header(header::CONTENT_TYPE)?.starts_with("text/html"), "{page:?}");
    // What is not known is named.
    let ignored = site.open_begin("?prompt=none").await?;
    ensure!(ignored.status == 303 && ignored.headers["x-ignored"] == "prompt", "{ignored:?}");

    let without = Site::new(engine, None).await?;
    let answer = without.open_begin("").await?;
    ensure!(answer.status == 404 && answer.text.contains("no provider of identities"), "{answer:?}");
    let json = without.send(Method::GET, begin, &[]).await?.json()?;
    ensure!(
        json == json!({"status": 404, "code": 40401, "moreInfo": json["moreInfo"],
        "errors": ["This server has no provider of identities."]}),
        "{json}"
    );
    Ok(())
}

crate::on_both_engines!(
    an_operator_signs_in_and_stays_linked,
    a_sign_in_that_cannot_be_trusted_begins_no_session,
    whoever_is_in_several_accounts_names_one,
    a_link_does_not_decide_between_accounts,
    an_account_may_refuse_the_provider,
    a_busy_server_does_not_burn_a_sign_in,
    an_address_with_an_odd_letter_is_another,
    the_beginning_is_a_page_of_this_site,
);
