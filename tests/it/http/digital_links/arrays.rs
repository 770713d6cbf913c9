//! Arrays of Things with Digital Links of their own.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use axum::http::Method;
use kernel::store::{Ctx, Db};
use redirects::store::log;
use serde_json::{Value, json};
use tests::{db::Engine, json::text, product::DEADLINE};
use tokio::time::timeout;

use super::{super::Api, GTIN, links, to};

impl Api {
    /// A product each of whose items has a Digital Link; gives its id.
    async fn known_product(&self) -> Result<String> {
        self.resolve("tn.gg", true).await?;
        let body = json!({"name": "Shoe", "identifiers": {"gs1:01": GTIN}, "links": links("https://e.com/p"),
            "serialMode": "known"});
        text(&self.create("/products", body).await?, "id")
    }
}

fn items(product: &str, serials: &[&str]) -> Value {
    let item = |serial: &&str| json!({"name": serial, "product": product, "identifiers": {"gs1:21": serial}});
    serials.iter().map(item).collect()
}

fn of(serial: &str) -> String {
    format!("01/{GTIN}/21/{serial}")
}

async fn the_digital_links_of_an_array_follow_it(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = api.known_product().await?;
    let quotas = format!("/platform/accounts/{}/quotas", api.made.account);
    let limit = async |links: Value| {
        let body = Some(json!({"links": links}));
        api.call_as(&api.platform_key, Method::PUT, &quotas, body).await?.must_be(200)
    };
    // That of the product and two more: an item that has no room is refused alone.
    limit(json!(3)).await?;
    let array = Some(items(&product, &["A", "B", "C"]));
    let made = api.call(Method::POST, "/thngs", array).await?.must_be(200)?.json();
    let made = made.as_array().context("an array")?;
    let statuses: Vec<&Value> = made.iter().map(|one| &one["status"]).collect();
    ensure!(statuses == [201, 201, 403], "{made:?}");
    for (serial, expected) in [("A", to("https://e.com/p", 0)), ("B", to("https://e.com/p", 0)), ("C", None)]
    {
        ensure!(api.leads(&of(serial)).await? == expected, "{serial}");
    }
    let listed = api.get(&format!("/thngs?filter=product%3D{product}")).await?.json();
    ensure!(listed.as_array().map(Vec::len) == Some(2), "{listed}");

    limit(json!("unlimited")).await?;
    let ids = [text(&made[0], "id")?, text(&made[1], "id")?].join(",");
    let change = Some(json!({"links": links("https://e.com/own")}));
    api.call(Method::PUT, &format!("/thngs?ids={ids}"), change).await?.must_be(204)?;
    for serial in ["A", "B"] {
        ensure!(api.leads(&of(serial)).await? == to("https://e.com/own", 1), "{serial}");
    }
    api.call(Method::DELETE, &format!("/thngs?ids={ids}"), None).await?.must_be(200)?;
    for serial in ["A", "B"] {
        ensure!(api.leads(&of(serial)).await?.is_none(), "{serial}");
    }
    Ok(())
}

crate::on_both_engines!(the_digital_links_of_an_array_follow_it);

/// The second item is held while it is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_array_does_not_hold_the_order_of_changes_while_it_is_written() -> Result<()> {
    let api = Api::new(Engine::Postgres).await?;
    let product = api.known_product().await?;
    let db = &api.made.app.core.db;
    let Db::Pg(pool) = db else { bail!("not Postgres") };
    let trigger = "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        PERFORM pg_advisory_xact_lock(7022, hashtext(current_schema())); RETURN NEW; END $$; \
        CREATE TRIGGER hold BEFORE INSERT ON thngs FOR EACH ROW WHEN (NEW.name = 'B') EXECUTE FUNCTION hold()";
    sqlx::raw_sql(trigger).execute(pool).await?;
    let mut holder = pool.acquire().await?;
    let lock = "SELECT pg_advisory_lock(7022, hashtext(current_schema()))";
    sqlx::query(lock).execute(&mut *holder).await?;
    let array = api.call(Method::POST, "/thngs", Some(items(&product, &["A", "B"])));
    let others = async {
        let waiting = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = 7022 \
            AND CAST(objid AS BIGINT) = CAST(hashtext(current_schema()) AS BIGINT) & 4294967295";
        let begun = Instant::now();
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(pool).await? == 0 {
            ensure!(begun.elapsed() < DEADLINE, "the second item is not written");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut tx = db.begin(&Ctx::default()).await?;
        // Shorter than a statement may run.
        timeout(Duration::from_secs(3), log::lock(&mut tx)).await.context("the array holds it")??;
        tx.commit().await?;
        let unlock = "SELECT pg_advisory_unlock(7022, hashtext(current_schema()))";
        sqlx::query(unlock).execute(&mut *holder).await?;
        anyhow::Ok(())
    };
    let (made, others) = tokio::join!(array, others);
    others?;
    let made = made?.must_be(200)?.json();
    ensure!(made[0]["status"] == 201 && made[1]["status"] == 201, "{made}");
    for serial in ["A", "B"] {
        ensure!(api.leads(&of(serial)).await? == to("https://e.com/p", 0), "{serial}");
    }
    Ok(())
}
