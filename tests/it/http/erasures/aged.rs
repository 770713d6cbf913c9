//! `personalDataDays`: what is old enough is cut, each day, and nothing else.

use ::privacy::service::ages;
use anyhow::{Result, ensure};
use control::worker::scan_retention;
use serde_json::{Value, json};
use shared::time::UnixMillis;
use tests::db::Engine;

use super::{IP, Scanned, found, marked, post, work_all};
use crate::http::authentication::HOUR;

crate::on_both_engines!(what_is_old_enough_is_cut_each_day);

pub(super) const DAY: i64 = 24 * HOUR;

/// What goes because of its age; the referer, the language and the entry URL stay, as with `none`.
const AGED: [&str; 4] = ["203.0.113.77", "cb00714d", "marked 7q", "46.948125"];

impl Scanned {
    pub(super) async fn keep_days(&self, days: Value) -> Result<Value> {
        let uri = format!("/accounts/{}", self.api.made.account);
        Ok(self.api.put(&uri, json!({"personalDataDays": days})).await?.must_be(200)?.json())
    }

    /// Lets so many days pass; retention follows by one a run.
    async fn pass(&self, days: i64) -> Result<()> {
        for _ in 0..days {
            self.api.made.clock.advance(DAY);
            scan_retention::run(&self.api.made.app).await?;
            work_all(&self.api).await?;
        }
        Ok(())
    }
}

async fn what_is_old_enough_is_cut_each_day(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine).await?;
    ensure!(scanned.keep_days(json!(null)).await?.get("personalDataDays").is_none());
    scanned.scan(&[marked("A", 1)?]).await?;
    let (key, thng) = (scanned.api.key.clone(), scanned.brand_thngs[0].clone());
    post(&scanned.api, &key, "/actions/scans", &json!({"thng": thng})).await?;
    scanned.pass(8).await?;
    ensure!(scanned.scans_of(0).await?[0]["context"]["ipAddress"] == IP, "without days everything stays");

    ensure!(scanned.keep_days(json!(10)).await?["personalDataDays"] == 10);
    scanned.pass(1).await?;
    ensure!(scanned.scans_of(0).await?[0]["context"]["ipAddress"] == IP, "nine days are not ten");
    // Ten days, and the rest of the day.
    scanned.pass(3).await?;
    let left = found(&scanned.api, &AGED).await?;
    ensure!(left.is_empty(), "{left:?}");
    let old = scanned.scans_of(0).await?;
    let context = &old[0]["context"];
    ensure!(old.len() == 1 && context.get("ipAddress").is_none() && context["city"] == "Bern", "{old:?}");
    ensure!(
        context["language"] == "sw-KE" && context["entryUrl"] == "https://tn.gg/A?who=marked7q",
        "{old:?}"
    );
    ensure!(old[0]["locationSource"] == "unknown" && old[0].get("location").is_none(), "{old:?}");

    // What comes later is whole until its time has come, too.
    scanned.scan(&[marked("B", 1)?]).await?;
    scanned.pass(9).await?;
    ensure!(scanned.scans_of(1).await?[0]["context"]["ipAddress"] == IP, "nine days are not ten");
    scanned.pass(3).await?;
    let left = found(&scanned.api, &AGED).await?;
    ensure!(left.is_empty(), "{left:?}");
    ensure!(scanned.scans_of(0).await? == old, "what was cut is left alone");
    // Nobody asked for it.
    let listed = scanned.api.get("/privacy/erasures").await?.json();
    ensure!(listed == json!([]), "{listed}");

    // A clock that was ahead for a while leaves nothing out afterwards.
    let ahead = UnixMillis(scanned.api.made.app.core.clock.now().0 + 15 * DAY);
    ages::schedule(&scanned.api.made.app.privacy, ahead).await?;
    work_all(&scanned.api).await?;
    scanned.pass(1).await?;
    scanned.scan(&[marked("B", 2)?]).await?;
    ensure!(!found(&scanned.api, &AGED).await?.is_empty(), "the marks can be found");
    scanned.pass(12).await?;
    let left = found(&scanned.api, &AGED).await?;
    ensure!(left.is_empty(), "{left:?}");

    // Taken away, nothing is cut any more.
    scanned.keep_days(json!(null)).await?;
    scanned.scan(&[marked("A", 2)?]).await?;
    scanned.pass(12).await?;
    ensure!(scanned.scans_of(0).await?[0]["context"]["ipAddress"] == IP);
    Ok(())
}
