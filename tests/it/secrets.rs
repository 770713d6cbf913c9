//! Secrets in the database: encrypted under a key outside of it, rotated, refused without it.

mod dump;
mod restore;
mod rotate;
mod start;
mod store;

use std::path::Path;

use ::secrets::{keys::SecretKeys, store as secrets};
use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    db::Location,
    json::text,
    product::{Product, free_ports},
};

use crate::store::schema::run;

/// The keys of a file.
fn keys_of(path: &Path) -> Result<SecretKeys> {
    Ok(control::secret_key_file::read(path)?)
}

/// Name and stored value of each secret.
async fn rows(location: &Location) -> Result<Vec<(String, Vec<u8>)>> {
    let db = location.open().await?;
    let rows = secrets::list(&mut db.read().await?).await?;
    db.close().await;
    Ok(rows)
}

/// Replaces the stored value of a secret.
async fn put(location: &Location, name: &str, value: &[u8]) -> Result<()> {
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    let value = match location {
        Location::Sqlite(_) => format!("x'{hex}'"),
        Location::Postgres(..) => format!("'\\x{hex}'"),
    };
    run(location, &[format!("UPDATE secrets SET value = {value} WHERE name = '{name}'")]).await
}

/// Makes of a database one of the release before: five plain secrets, and schema 40.
async fn set_back(location: &Location, keys: &SecretKeys) -> Result<Vec<(String, Vec<u8>)>> {
    let mut plain = Vec::new();
    for (name, value) in rows(location).await? {
        let value = keys.open(&name, &value).map_err(|error| anyhow::anyhow!("{name}: {error:?}"))?;
        put(location, &name, &value).await?;
        plain.push((name, value));
    }
    run(
        location,
        &[
            "DELETE FROM secrets WHERE name IN ('kept-answer', 'audit', 'mail', 'sign-in', 'certificate')"
                .to_owned(),
            "DELETE FROM _sqlx_migrations WHERE version = 41".to_owned(),
            "DELETE FROM schema_versions WHERE version = 41".to_owned(),
        ],
    )
    .await?;
    plain.retain(|(name, _)| {
        !matches!(name.as_str(), "kept-answer" | "audit" | "mail" | "sign-in" | "certificate")
    });
    ensure!(plain.len() == 5, "{}", plain.len());
    Ok(plain)
}

/// What a client holds that was derived from the secrets.
struct Holdings {
    app: String,
    app_key: String,
    thng: String,
    thng_key: String,
    webhook: String,
    webhook_secret: String,
    file: String,
    content_url: String,
    upload_url: String,
    /// Path of the second page of Thngs.
    next: String,
}

impl Holdings {
    async fn new(product: &Product) -> Result<Self> {
        let create = async |path: &str, body: Value| {
            let (status, body) = product.call(Method::POST, path, Some(body)).await?;
            ensure!(status == StatusCode::CREATED, "{path}: {status} {body}");
            anyhow::Ok(body)
        };
        let project = text(&create("/projects", json!({"name": "p"})).await?, "id")?;
        let app =
            create(&format!("/projects/{project}/applications"), json!({"name": "a", "socialNetworks": {}}))
                .await?;
        let thng = text(&create("/thngs", json!({"name": "t"})).await?, "id")?;
        create("/thngs", json!({"name": "u"})).await?;
        let thng_key = create("/auth/evrythng/thngs", json!({"thngId": thng})).await?;
        let hook = json!({"name": "w", "url": "https://example.com/", "status": "disabled"});
        let webhook = text(&create("/webhooks", hook).await?, "id")?;
        let (_, signs) = product.call(Method::GET, &format!("/webhooks/{webhook}/secrets"), None).await?;
        let file = create("/files", json!({"name": "f", "privateAccess": true})).await?;
        let held = Self {
            app: text(&app, "id")?,
            app_key: text(&app, "appApiKey")?,
            thng,
            thng_key: text(&thng_key, "thngApiKey")?,
            webhook,
            webhook_secret: text(&signs[0], "secret")?,
            file: text(&file, "id")?,
            content_url: text(&file, "contentUrl")?,
            upload_url: text(&file, "uploadUrl")?,
            next: next_page(product, "/thngs?perPage=1").await?,
        };
        let sent = product.http.put(&held.upload_url).body("content").send().await?;
        ensure!(sent.status().is_success(), "upload: {}", sent.status());
        Ok(held)
    }

    /// Everything is valid still.
    async fn work(&self, product: &Product) -> Result<()> {
        for key in [&self.app_key, &self.thng_key] {
            let answer = product.http.get(format!("{}/access", product.api)).header("authorization", key);
            let status = answer.send().await?.status();
            ensure!(status == StatusCode::OK, "a key: {status}");
        }
        let (status, body) = product.call(Method::GET, &self.next, None).await?;
        ensure!(status == StatusCode::OK && body.as_array().is_some_and(|page| page.len() == 1), "{status}");
        let content = product.http.get(&self.content_url).send().await?;
        ensure!(content.status() == StatusCode::OK, "a file: {}", content.status());
        ensure!(content.text().await? == "content");
        let path = format!("/webhooks/{}/secrets", self.webhook);
        let (status, signs) = product.call(Method::GET, &path, None).await?;
        ensure!(status == StatusCode::OK && signs[0]["secret"] == self.webhook_secret, "{status} {signs}");
        let path = format!("/auth/evrythng/thngs/{}", self.thng);
        let (status, thng) = product.call(Method::GET, &path, None).await?;
        ensure!(status == StatusCode::OK && thng["thngApiKey"] == self.thng_key, "{status} {thng}");
        Ok(())
    }
}

/// The path of the page that follows a list's first one.
async fn next_page(product: &Product, path: &str) -> Result<String> {
    let request = product.http.get(format!("{}{path}", product.api)).header("authorization", &product.key);
    let response = request.send().await?.error_for_status()?;
    let link = response.headers().get("link").context("no next page")?.to_str()?;
    let encoded = link.trim_start_matches('<').split('>').next().unwrap_or_default();
    let url = percent_encoding::percent_decode_str(encoded).decode_utf8()?.into_owned();
    Ok(url.trim_start_matches(&product.api).to_owned())
}

/// The exit code and the last line on stderr of `waymark up` or a tool on the data of a product that is stopped.
fn waymark(data: &Path, location: &Location, args: &[&str]) -> Result<(Option<i32>, String)> {
    let mut command = std::process::Command::new(tests::product::binary()?);
    command.args(args).env("WAYMARK_DATA_DIR", data).env("RUST_LOG", "warn");
    command.envs(free_ports(["API", "EDGE", "ADMIN"]));
    if let Location::Postgres(url) = location {
        command.env("DATABASE_URL", url);
    }
    let output = command.output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
}
