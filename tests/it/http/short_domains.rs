//! Short domains of an account: their order, and which of their settings may change.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use control::service::seed;
use kernel::{error::ServiceError, store::Ctx};
use redirects::store::log;
use serde_json::{Value, json};
use shared::{
    problem::Code,
    short_url::{Scheme, ShortDomain},
    wire::stream::Change,
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
    api.post("/redirections", body).await?.must_be(200)?;
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
    ensure!(api.delete("/redirections/A?domain=x.gg").await?.status == 200);
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
        let made = api.post(&path, body.clone()).await?.json();
        ensure!(made["shortDomain"] == host, "{made}");
    }
    Ok(())
}

/// What edges were told of a domain, in order: the age that its redirects may have.
async fn told(api: &Api, host: &str) -> Result<Vec<Option<u32>>> {
    let mut conn = api.made.app.core.db.read().await?;
    let epoch = log::load_head(&mut conn).await?.epoch;
    let events = log::list_after(&mut conn, &epoch, 0, 100).await?;
    let ages = events.into_iter().filter_map(|event| match event.change {
        Change::Domain(domain) if domain.host.as_str() == host => Some(domain.redirect_max_age),
        _ => None,
    });
    Ok(ages.collect())
}

async fn an_operator_says_how_long_redirects_are_kept(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let list = format!("/accounts/{}/domains", api.made.account);
    let path = format!("{list}/tn.gg");
    let put = async |age: Value| api.put(&path, json!({"redirectMaxAge": age})).await;
    let before = told(&api, "tn.gg").await?;
    // The same once more is no change.
    for age in [json!(60), json!(0), json!(86_400), json!(86_400), json!(null)] {
        let mut expected =
            json!({"domain": "tn.gg", "host": "tn.gg", "state": "verified", "source": "platform"});
        if age.is_number() {
            expected["redirectMaxAge"] = age.clone();
        }
        let mut whole = expected.clone();
        whole["robots"] = json!("none");
        let answer = put(age.clone()).await?;
        ensure!(answer.status == 200 && answer.json() == whole, "{age}: {answer:?}");
        let listed = api.get(&list).await?.json();
        let domains = listed.as_array().with_context(|| listed.to_string())?;
        ensure!(domains.contains(&expected), "{age}: {listed}");
    }
    // A code may be on it already, whose payload this does not change.
    let told_since = told(&api, "tn.gg").await?.split_off(before.len());
    ensure!(told_since == [Some(60), Some(0), Some(86_400), None], "{told_since:?}");
    let trail = api.get("/audit?filter=resource=shortDomain&perPage=100").await?.json();
    let entries = trail.as_array().with_context(|| trail.to_string())?;
    ensure!(
        entries[0]["resourceId"] == "tn.gg" && entries[0]["before"] == json!({"redirectMaxAge": 86_400}),
        "{trail}"
    );
    // What is not given stays.
    put(json!(30)).await?;
    let answer = api.put(&path, json!({})).await?;
    ensure!(answer.json()["redirectMaxAge"] == 30, "{answer:?}");
    let answer = api.put(&path, json!({"domain": "x.gg", "scheme": "http"})).await?;
    // What its record has besides is read-only.
    ensure!(answer.header("x-ignored") == Some("scheme"), "{answer:?}");

    let before = api.fingerprint().await?;
    for age in [json!(86_401), json!(-1), json!(0.5), json!("60"), json!(true), json!([60])] {
        let faults = put(age.clone()).await?.problem(400, 40001);
        let fault = "redirectMaxAge must be a whole number of seconds from 0 to 86400, or null.";
        ensure!(faults == [fault], "{age}: {faults:?}");
    }
    // Domains of others, and accounts of others, are not there.
    for path in [
        format!("{list}/other.gg"),
        format!("{list}/x.gg"),
        format!("{list}/%00"),
        format!("/accounts/{}/domains/other.gg", api.other_account),
        format!("/accounts/{}/domains/tn.gg", api.other_account),
    ] {
        api.put(&path, json!({"redirectMaxAge": 9})).await?.problem(404, 40401);
    }
    assert_eq!(before, api.fingerprint().await?);
    Ok(())
}

/// Codes may be printed with what a domain says, so that it stays.
async fn paths_are_those_of_short_urls(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let path = format!("/accounts/{}/shortDomains/tn.gg", api.made.account);
    let put = async |body: Value| api.put(&path, body).await;
    let thng = api.create("/thngs", json!({"name": "t"})).await?["id"].as_str().context("id")?.to_owned();
    let make = async |short_id: &str| {
        let body =
            json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": short_id});
        api.post("/redirections?domain=tn.gg", body).await
    };
    ensure!(make("A").await?.status == 200);
    let faults = make("sale/2026").await?.problem(400, 40001);
    ensure!(faults[0].starts_with("shortId: short ids of tn.gg have one segment"), "{faults:?}");
    put(json!({"prefixInUrls": true})).await?.problem(409, 40901);

    let paths = json!({"pathPrefix": "shop/go", "prefixInUrls": true, "multiSegment": true});
    let answer = put(paths.clone()).await?;
    let has_paths =
        |shown: &Value| paths.as_object().into_iter().flatten().all(|(name, it)| shown[name] == *it);
    ensure!(answer.status == 200 && has_paths(&answer.json()), "{answer:?}");
    ensure!(has_paths(&api.get(&path).await?.json()));
    let mut conn = api.made.app.core.db.read().await?;
    let epoch = log::load_head(&mut conn).await?.epoch;
    let told =
        log::list_after(&mut conn, &epoch, 0, 100).await?.into_iter().rev().find_map(|event| {
            if let Change::Domain(domain) = event.change { Some(domain.paths) } else { None }
        });
    drop(conn);
    ensure!(serde_json::to_value(told.context("edges were told")?)? == paths);
    let trail = api.get("/audit?filter=resource=shortDomain").await?.json();
    ensure!(has_paths(&trail[0]["after"]) && trail[0]["before"].get("pathPrefix").is_none(), "{trail}");

    // Links of before have the prefix, too.
    let found = api.get("/redirections/A?domain=tn.gg").await?.json();
    ensure!(found["shortUrl"] == "https://tn.gg/shop/go/A", "{found}");
    ensure!(found["qr"]["payload"] == "HTTPS://TN.GG/SHOP/GO/A", "{found}");
    let made = make("Sale/2026/shoes").await?;
    let at = made.header("location").context("location")?;
    ensure!(made.status == 200 && at.contains("/redirections/Sale%2F2026%2Fshoes"), "{made:?}");
    let found = api.get("/redirections/sale%2F2026%2FSHOES?domain=tn.gg").await?.json();
    ensure!(found["shortId"] == "Sale/2026/shoes", "{found}");
    make("SALE/2026/Shoes").await?.problem(409, 40902);
    for (short_id, part) in [
        ("Shop/go/x", "must not begin with shop/go/"),
        ("01/09506000134352", "Digital Link"),
        ("redirections/x", "reserved"),
        ("a/b/c/d/e", "1 to 64 characters"),
    ] {
        let faults = make(short_id).await?.problem(400, 40001);
        ensure!(faults.len() == 1 && faults[0].contains(part), "{short_id}: {faults:?}");
    }
    // A target below the prefix is a short URL as well.
    for url in ["https://tn.gg/shop/go/a", "https://tn.gg/A"] {
        let change = Some(json!({"defaultRedirectUrl": url}));
        let answer = api.call(Method::PUT, "/redirections/A?domain=tn.gg", change).await?;
        ensure!(answer.status == 400, "{url}: {answer:?}");
    }

    for (body, part) in [
        (json!({"pathPrefix": "other", "prefixInUrls": false}), "stays while prefixInUrls is true"),
        (json!({"multiSegment": false}), "multiSegment of tn.gg stays true"),
        (json!({"pathPrefix": null}), "prefixInUrls needs a pathPrefix"),
    ] {
        let faults = put(body).await?.problem(409, 40901);
        ensure!(faults[0].contains(part), "{faults:?}");
    }
    ensure!(put(json!({"prefixInUrls": null})).await?.status == 200);
    let faults = put(json!({"pathPrefix": null})).await?.problem(409, 40901);
    ensure!(faults[0].contains("because multiSegment is true"), "{faults:?}");
    let found = api.get("/redirections/A?domain=tn.gg").await?.json();
    ensure!(found["shortUrl"] == "https://tn.gg/A", "{found}");
    Ok(())
}

async fn a_code_has_the_logo_of_its_domain(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?["id"].as_str().context("id")?.to_owned();
    let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "A"});
    ensure!(api.post("/redirections?color=1a4d8f", body).await?.status == 200);
    let code = async |query: &str| api.get(&format!("/redirections/A.qr?ecl=H&version=6&{query}")).await;
    for (query, part) in [("color=eeeeee", "contrast"), ("logo=1", "no logo")] {
        let faults = code(query).await?.problem(422, 42201);
        ensure!(faults[0].contains(part), "{query}: {faults:?}");
    }
    let plain = code("").await?;
    let logo = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let path = format!("/accounts/{}/pages", api.made.account);
    ensure!(api.put(&path, json!({"logo": logo})).await?.status == 200);
    for query in ["logo=1", "shape=dots&color=1a4d8f"] {
        let answer = code(query).await?;
        let is_png = answer.header("content-type") == Some("image/png");
        ensure!(answer.status == 200 && is_png && answer.bytes != plain.bytes, "{query}: {answer:?}");
    }
    Ok(())
}

crate::on_both_engines!(
    a_code_has_the_logo_of_its_domain,
    paths_are_those_of_short_urls,
    an_operator_says_how_long_redirects_are_kept,
    a_domain_is_changed_until_a_code_was_created_on_it,
    codes_are_created_on_the_first_domain,
);
