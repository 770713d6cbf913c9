//! What a short domain serves beside its links.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kernel::store::Ctx;
use push::store::snapshot::Snapshot;
use serde_json::{Value, json};
use shared::{
    domain_files::{DomainFiles, JsonFile, Robots},
    id::AccountId,
    short_url::{Host, ShortDomain},
};
use tenants::store::domain_files;
use tests::db::Engine;

use super::Setting;

crate::on_both_engines!(files_are_stored_and_published, files_are_bounded);

/// The domain as a new edge learns of it.
async fn published(all: &Setting, host: &str) -> Result<ShortDomain> {
    let mut snapshot = Snapshot::begin(&all.api.made.app.core.db).await?;
    let domains = snapshot.setup().await?.domains;
    domains.into_iter().find(|domain| domain.host.as_str() == host).context("published")
}

async fn files_are_stored_and_published(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    let path = format!("{}/tn.gg", all.path());
    let put = async |body: Value| all.api.put(&path, body).await;
    ensure!(published(&all, "tn.gg").await?.files.is_none());
    let links = json!([{"relation": ["delegate_permission/common.handle_all_urls"],
        "target": {"namespace": "android_app", "package_name": "com.example", "sha256_cert_fingerprints": ["14:6D"]}}]);
    let association =
        json!({"applinks": {"details": [{"appIDs": ["A.com.example"], "components": [{"/": "/*"}]}]}});
    let body = json!({"robots": "all", "assetLinks": links, "appleAppSiteAssociation": association,
        "redirectMaxAge": 60, "unknown": 1});
    let answer = put(body).await?;
    ensure!(answer.status == 200 && answer.header("x-ignored") == Some("unknown"), "{answer:?}");
    for shown in [answer.json(), all.read("tn.gg").await?] {
        ensure!(shown["robots"] == "all" && shown["redirectMaxAge"] == 60, "{shown}");
        ensure!(shown["assetLinks"] == links && shown["appleAppSiteAssociation"] == association, "{shown}");
    }
    let files = published(&all, "tn.gg").await?.files.context("files")?;
    ensure!(files.robots == Robots::All, "{files:?}");
    let text = files.asset_links.as_ref().context("links")?.as_str();
    ensure!(serde_json::from_str::<Value>(text)? == links, "{text}");
    ensure!(published(&all, "other.gg").await?.files.is_none(), "another domain");
    // A list has none of them.
    let listed = all.api.get(&format!("/accounts/{}/domains", all.api.made.account)).await?.json();
    ensure!(listed[0].get("assetLinks").is_none() && listed[0].get("robots").is_none(), "{listed}");
    // The trail says how large they are.
    let trail = all.api.get("/audit?filter=resource=shortDomain").await?.json();
    ensure!(trail[0]["after"]["assetLinks"]["bytes"] == links.to_string().len(), "{trail}");

    let before = all.api.fingerprint().await?;
    let wrong = put(json!({"robots": "few", "assetLinks": {}, "appleAppSiteAssociation": []})).await?;
    ensure!(wrong.problem(400, 40001).len() == 3);
    put(json!({"assetLinks": [{"a": "x".repeat(64 << 10)}]})).await?.problem(400, 40001);
    all.api.call_as(&all.api.other_key, Method::PUT, &path, Some(json!({}))).await?.problem(404, 40401);
    assert_eq!(before, all.api.fingerprint().await?);

    let answer = put(json!({"robots": null, "assetLinks": null, "appleAppSiteAssociation": null})).await?;
    ensure!(answer.json()["robots"] == "none" && answer.json().get("assetLinks").is_none(), "{answer:?}");
    ensure!(published(&all, "tn.gg").await?.files.is_none());
    Ok(())
}

/// Every edge holds all files, and is told all of them when it connects.
async fn files_are_bounded(engine: Engine) -> Result<()> {
    let all = Setting::new(engine).await?;
    all.prove("go.example").await?;
    let put = async |host: &str, body: Value| all.api.put(&format!("{}/{host}", all.path()), body).await;
    // Larger than a request may make it.
    let store = async |account: AccountId, host: &str, bytes: usize| -> Result<()> {
        let file = JsonFile::stored(format!("\"{}\"", "x".repeat(bytes)));
        let files = DomainFiles { asset_links: Some(file), ..DomainFiles::default() };
        let mut tx = all.api.made.app.core.db.begin(&Ctx::default()).await?;
        let host: Host = host.parse()?;
        domain_files::put(&mut tx, account, &host, &files).await?;
        Ok(tx.commit().await?)
    };
    store(all.api.made.account, "go.example", 1 << 20).await?;
    let faults = put("tn.gg", json!({"assetLinks": []})).await?.problem(409, 40901);
    ensure!(faults[0].contains("the account's short domains take at most 1048576 bytes"), "{faults:?}");
    ensure!(all.read("tn.gg").await?.get("assetLinks").is_none(), "nothing was stored");
    ensure!(put("tn.gg", json!({"robots": "all"})).await?.status == 200, "it is no file");
    ensure!(put("go.example", json!({"assetLinks": []})).await?.status == 200, "less than before");
    ensure!(put("tn.gg", json!({"assetLinks": []})).await?.status == 200);

    store(all.api.other_account, "other.gg", 16 << 20).await?;
    let faults = put("tn.gg", json!({"appleAppSiteAssociation": {}})).await?.problem(409, 40901);
    ensure!(
        faults[0].contains("all short domains of this service take at most 16777216 bytes"),
        "{faults:?}"
    );
    Ok(())
}
