//! Short domains of an account: their order, and which of their settings may change.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use control::service::seed;
use kernel::{error::ServiceError, store::Ctx};
use serde_json::json;
use shared::{
    problem::Code,
    short_url::{Scheme, ShortDomain},
};
use tenants::store::accounts;
use tests::db::Engine;

use super::Api;

impl Api {
    /// Short domains of the first account: scheme, host and whether case counts.
    async fn domains(&self) -> Result<Vec<(Scheme, String, bool)>> {
        let mut conn = self.made.app.core.db.read().await?;
        let domains = accounts::list_domains(&mut conn, self.made.account).await?;
        Ok(domains.iter().map(|one| (one.scheme, one.host.to_string(), one.case_sensitive)).collect())
    }

    async fn change(&self, domain: ShortDomain) -> Result<(), ServiceError> {
        let app = &self.made.app;
        seed::change_domain(&app.core.db, &*app.core.clock, Some(self.made.account), domain).await
    }
}

async fn a_domain_is_changed_until_a_code_was_created_on_it(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let app = &api.made.app;
    let https = ShortDomain::new(Scheme::Https, "x.gg")?;
    let added = std::slice::from_ref(&https);
    ensure!(seed::add_domains(&app.core.db, &*app.core.clock, Some(api.made.account), added).await? == 1);
    let http = ShortDomain { scheme: Scheme::Http, case_sensitive: true, ..https.clone() };
    api.change(http).await?;
    ensure!(api.domains().await?.contains(&(Scheme::Http, "x.gg".to_owned(), true)));
    api.change(https.clone()).await?;

    let thng = api.create("/thngs", json!({"name": "t"})).await?["id"].as_str().context("id")?.to_owned();
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "A",
        "shortDomain": "x.gg"});
    let made = api.call(Method::POST, "/redirections", Some(body)).await?;
    ensure!(made.status == 200, "{made:?}");
    let before = api.fingerprint().await?;
    for domain in [
        ShortDomain { scheme: Scheme::Http, ..https.clone() },
        ShortDomain { case_sensitive: true, ..https.clone() },
    ] {
        let refused = api.change(domain).await.unwrap_err();
        ensure!(refused.code() == Code::Conflict && refused.code().status() == 409, "{refused}");
        ensure!(refused.to_string().contains("Codes were created on x.gg"), "{refused}");
    }
    let unknown = api.change(ShortDomain::new(Scheme::Https, "y.gg")?).await.unwrap_err();
    ensure!(unknown.code() == Code::NotFound, "{unknown}");
    let theirs = api.change(ShortDomain::new(Scheme::Http, "other.gg")?).await.unwrap_err();
    ensure!(theirs.code() == Code::NotFound, "{theirs}");
    assert_eq!(before, api.fingerprint().await?);
    // What is printed stays, also when its redirection is gone.
    ensure!(api.call(Method::DELETE, "/redirections/A?domain=x.gg", None).await?.status == 200);
    let refused = api.change(ShortDomain { scheme: Scheme::Http, ..https }).await.unwrap_err();
    ensure!(refused.code() == Code::Conflict, "{refused}");
    Ok(())
}

async fn codes_are_created_on_the_first_domain(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let app = &api.made.app;
    let thng = api.create("/thngs", json!({"name": "t"})).await?["id"].as_str().context("id")?.to_owned();
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/"});
    for host in ["a.gg", "b.gg", "a.gg"] {
        let domain = ShortDomain::new(Scheme::Https, host)?;
        seed::add_domains(
            &app.core.db,
            &*app.core.clock,
            Some(api.made.account),
            std::slice::from_ref(&domain),
        )
        .await?;
        let count = api.domains().await?.len();
        let mut tx = app.core.db.begin(&Ctx::default()).await?;
        accounts::put_first(&mut tx, api.made.account, &domain).await?;
        tx.commit().await?;
        let domains = api.domains().await?;
        ensure!(domains[0].1 == host && domains.len() == count, "{domains:?}");
        let path = format!("/thngs/{thng}/redirector");
        let made = api.call(Method::POST, &path, Some(body.clone())).await?.json();
        ensure!(made["shortDomain"] == host, "{made}");
    }
    Ok(())
}

crate::on_both_engines!(
    a_domain_is_changed_until_a_code_was_created_on_it,
    codes_are_created_on_the_first_domain,
);
