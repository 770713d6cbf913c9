//! kill -9 at random moments, and waiting for what the product does in the background.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::Value;
use sqlx::{Connection, PgConnection};

use crate::{
    campaign::load::random,
    db::Location,
    is_long,
    product::{DEADLINE, Product},
};

/// What work takes without optimisation, and leases of killed workers that run out: times [`DEADLINE`].
const PATIENCE: u32 = 10;

/// Random numbers that a seed repeats.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Those of `WAYMARK_TEST_SEED`, or others in each run; says the seed and what it is for.
    ///
    /// # Errors
    /// The setting is no number, or the system has no random bits.
    pub fn seeded(what: &str) -> Result<Self> {
        let seed = match setting("WAYMARK_TEST_SEED")? {
            Some(seed) => seed,
            None => getrandom::u64().map_err(|error| anyhow::anyhow!("{error}"))?,
        };
        say(&format!("{what}, WAYMARK_TEST_SEED={seed}"));
        Ok(Self(seed))
    }

    /// The next number below another one.
    pub fn next(&mut self, below: u64) -> u64 {
        random(&mut self.0) % below
    }

    /// A time below so many milliseconds.
    pub fn millis(&mut self, below: u64) -> Duration {
        Duration::from_micros(self.next(below * 1_000))
    }
}

/// A whole number from the environment.
///
/// # Errors
/// It is something else.
pub fn setting(name: &str) -> Result<Option<u64>> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    text.parse().map(Some).with_context(|| format!("{name}={text}"))
}

/// Prints a line.
pub fn say(text: &str) {
    #[expect(clippy::print_stdout, reason = "the figures are what a reader of the test's output wants")]
    {
        println!("{text}");
    }
}

/// As though every lease of a product that was killed had run out. On SQLite there is one process, which frees them as it starts.
pub async fn expire_leases(product: &Product) -> Result<()> {
    let Location::Postgres(url) = product.location() else { return Ok(()) };
    let sql = "UPDATE jobs SET lease_until = 0 WHERE completed_at IS NULL; \
        UPDATE print_orders SET lease_until = 0 WHERE settled = 0; \
        UPDATE link_changes SET lease_until = 0 WHERE settled = 0; UPDATE removed_applications SET lease_until = 0; \
        UPDATE erasures SET lease_until = 1 WHERE lease_until > 0; UPDATE webhooks SET lease_until = 0";
    sqlx::raw_sql(sql).execute(&mut PgConnection::connect(&url).await?).await?;
    Ok(())
}

/// Creates a resource; gives it.
pub async fn create(product: &Product, path: &str, body: Value) -> Result<Value> {
    let made = product.must_answer(201, Method::POST, path, Some(body)).await?;
    Ok(made)
}

/// Reads a resource until it is as `is` says; gives it.
pub async fn until(product: &Product, path: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
    let begun = Instant::now();
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    loop {
        let found = product.must_answer(200, Method::GET, path, None).await?;
        if is(&found) {
            return Ok(found);
        }
        ensure!(begun.elapsed() < DEADLINE * PATIENCE, "{path} stays {found}");
        tick.tick().await;
    }
}

/// Waits until an item of background work has ended; gives it.
pub async fn ended(product: &Product, path: &str) -> Result<Value> {
    until(product, path, |item| item.get("completedAt").is_some()).await
}

/// Kills the product `most` times while it works on an item, each time less than `within_ms` after the item moved on, and starts it
/// again. Then lets the item end, and gives it.
///
/// # Errors
/// The item ended before it was disturbed `least` times, or does not end.
pub async fn end_under_kills(
    product: &mut Product,
    path: &str,
    (random, within_ms): (&mut Random, u64),
    (least, most): (u64, u64),
) -> Result<Value> {
    let (mut killed, mut places) = (0, Vec::new());
    while killed < most {
        let seen = until(product, path, |_| true).await?;
        if seen.get("completedAt").is_some() {
            break;
        }
        // Somebody has it again, and is somewhere in the middle.
        let moved = until(product, path, |item| item["updatedAt"] != seen["updatedAt"]).await?;
        if moved.get("completedAt").is_some() {
            break;
        }
        tokio::time::sleep(random.millis(within_ms)).await;
        places.push(format!("{} {}", moved["status"], moved["progress"]["percentage"]));
        product.kill()?;
        killed += 1;
        if !is_long() {
            expire_leases(product).await?;
        }
        product.start_again().context("the product does not come up after a kill")?;
    }
    say(&format!("killed {killed} times, at {places:?}"));
    ensure!(killed >= least, "the item was over before it was disturbed");
    ended(product, path).await
}
