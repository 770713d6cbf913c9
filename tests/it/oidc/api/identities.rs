//! Linked identities: how many there are, and how they end.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::json;
use tests::db::Engine;

use super::{super::site::Site, session};
use crate::{on_both_engines, store::redirections::execute};

/// With one identity more than there may be, the one goes that was not used for the longest time.
async fn an_operator_keeps_its_newest_identities(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    let ada = site.add_operator(site.made.account, "countess@example.com").await?;
    for n in 0..20 {
        let sql = format!(
            "INSERT INTO operator_identities (account_id, operator_id, issuer, subject, email, created_at, \
             last_used_at) VALUES ('{}', '{ada}', 'https://old.example.com', 's{n}', 'x', {n}, {})",
            site.made.account,
            1_000 - (n * 7) % 20
        );
        execute(&site.made, &sql).await?;
    }
    session(&site.sign_in(&provider, "", "countess").await?)?;
    let rows = tests::fingerprint::fingerprint(&site.made.db.location).await?;
    let linked = &rows["operator_identities"];
    ensure!(linked.len() == 20 && linked.iter().any(|row| row.contains("countess")), "{linked:?}");
    // 17 * 7 % 20 = 19.
    ensure!(!linked.iter().any(|row| row.contains("s17")), "{linked:?}");
    Ok(())
}

/// Who manages operators sees what is linked to them, and unlinks it; their sessions end.
async fn whoever_manages_operators_unlinks_their_identities(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    let cookie = session(&site.sign_in(&provider, "", "ada").await?)?;
    let who = site.console(Method::GET, "/console/api/session", &cookie).await?.json()?;
    let id = who["operator"]["id"].as_str().context("id")?;
    let uri = format!("/accounts/{}/operatorAccess/{id}/identities", site.made.account);
    let linked = site.own(Method::GET, &uri).await?.json()?;
    ensure!(linked[0]["subject"] == "ada" && linked.as_array().is_some_and(|all| all.len() == 1), "{linked}");
    let one = format!("{uri}/{}", linked[0]["id"].as_str().context("id")?);
    // Nobody without the permission, no other operator's, and nobody of another account.
    let of_other = one.replace(id, site.made.operator.as_str());
    for path in [&of_other, &format!("{uri}/x"), &one.replace(id, "UKXAGyEf8SQ5eTDmVgGpHqAa")] {
        ensure!(site.own(Method::DELETE, path).await?.status == 404, "{path}");
    }
    site.add_operator(site.made.account, "eve@example.com").await?;
    let sql = "UPDATE operators SET roles = 'printer' WHERE email = 'eve@example.com'";
    execute(&site.made, sql).await?;
    let eve = session(&site.sign_in(&provider, "", "eve").await?)?;
    for (method, path) in [(Method::GET, &uri), (Method::DELETE, &one)] {
        let refused = site.console(method, &format!("/console/api{path}"), &eve).await?;
        ensure!(refused.status == 403, "{path}: {refused:?}");
    }
    ensure!(site.console(Method::GET, "/console/api/session", &cookie).await?.status == 200);
    let gone = site.own(Method::DELETE, &one).await?;
    ensure!(gone.status == 200, "{gone:?}");
    ensure!(site.own(Method::GET, &uri).await?.json()? == json!([]));
    ensure!(site.console(Method::GET, "/console/api/session", &cookie).await?.status == 401);
    ensure!(site.console(Method::GET, "/console/api/session", &eve).await?.status == 200);
    ensure!(site.own(Method::DELETE, &one).await?.status == 404, "once");
    Ok(())
}

async fn an_operator_that_is_removed_takes_its_identities_along(engine: Engine) -> Result<()> {
    let (provider, site) = Site::with_provider(engine).await?;
    let cookie = session(&site.sign_in(&provider, "", "ada").await?)?;
    ensure!(site.count("operator_identities").await? == 1);
    let who = site.console(Method::GET, "/console/api/session", &cookie).await?.json()?;
    let id = who["operator"]["id"].as_str().context("id")?;
    let uri = format!("/accounts/{}/operatorAccess/{id}", site.made.account);
    let removed = site.own(Method::DELETE, &uri).await?;
    ensure!(removed.status == 200, "{removed:?}");
    ensure!(site.count("operator_identities").await? == 0);
    let refused = site.sign_in(&provider, "", "ada").await?;
    ensure!(refused.status == 403 && refused.text.contains("No operator"), "{refused:?}");
    Ok(())
}

on_both_engines!(
    an_operator_keeps_its_newest_identities,
    whoever_manages_operators_unlinks_their_identities,
    an_operator_that_is_removed_takes_its_identities_along
);
