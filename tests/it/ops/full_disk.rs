//! `waymark up` while its disk is full.

use anyhow::{Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    campaign::disk::SmallDisk,
    product::{Options, Product},
};

use crate::fleet::until;

async fn ready(product: &Product, path: &str) -> Result<(StatusCode, Value)> {
    let answer = product.http.get(format!("{}{path}", product.admin)).send().await?;
    Ok((answer.status(), answer.json().await?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_serves_writes_again_once_a_full_disk_has_room() -> Result<()> {
    let mut product = Product::start(Options { unlimited: true, ..Options::default() }).await?;
    ensure!(product.stop()?.success());
    let disk = match SmallDisk::mount(&product.data) {
        Ok(disk) => disk,
        Err(error) => {
            // As in the campaign, which says so too: a machine may refuse to mount.
            eprintln!("not run: {error:#}");
            return Ok(());
        }
    };
    product.start_again()?;
    let bag = product.create_product().await?;
    product.create_redirection(&bag, "https://example.com/", Some("ONE")).await?;
    ensure!(ready(&product, "/ready").await?.0 == StatusCode::OK);

    disk.fill_up()?;
    let body = json!({"name": "Bag", "customFields": {"filler": "x".repeat(60_000)}});
    let create = async || product.call(Method::POST, "/products", Some(body.clone())).await;
    until("a write is refused", async || {
        let (status, said) = create().await?;
        ensure!([StatusCode::CREATED, StatusCode::SERVICE_UNAVAILABLE].contains(&status), "{status} {said}");
        Ok(status == StatusCode::SERVICE_UNAVAILABLE)
    })
    .await?;
    until("it is not ready", async || {
        let _ = create().await?;
        let (status, said) = ready(&product, "/ready").await?;
        Ok(status == StatusCode::SERVICE_UNAVAILABLE && said["control"]["writable"] == false)
    })
    .await?;
    let writable =
        async || anyhow::Ok(product.metrics().await?.get("waymark_control_store_writable").copied());
    ensure!(writable().await? == Some(0.0));
    // What is printed leads on.
    ensure!(ready(&product, "/ready/edge").await?.0 == StatusCode::OK);
    ensure!(product.scan("ONE").await?.0 == StatusCode::TEMPORARY_REDIRECT);

    disk.make_room()?;
    until("writes are taken again", async || Ok(create().await?.0 == StatusCode::CREATED)).await?;
    until("it is ready again", async || Ok(ready(&product, "/ready").await?.0 == StatusCode::OK)).await?;
    ensure!(writable().await? == Some(1.0));
    Ok(())
}

/// The error is the real server's own, as a table that cannot grow has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_with_a_full_disk_is_answered_503() -> Result<()> {
    let fleet = tests::fleet::Fleet::start(1).await?;
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$; \
        CREATE TRIGGER full_disk BEFORE INSERT ON products FOR EACH ROW EXECUTE FUNCTION full_disk()";
    let kernel::store::Db::Pg(pool) = fleet.db() else { anyhow::bail!("not Postgres") };
    sqlx::raw_sql(full).execute(pool).await?;
    let (status, body) = fleet.call(0, Method::POST, "/products", Some(json!({"name": "Bag"}))).await?;
    ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{status} {body}");
    sqlx::raw_sql("DROP TRIGGER full_disk ON products").execute(pool).await?;
    fleet.create_product(0).await?;
    Ok(())
}
