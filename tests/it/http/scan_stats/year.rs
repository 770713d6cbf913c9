//! More than a year, by a moved clock: months of scans are dropped, hours and devices of statistics removed, old scans cut, and a
//! network erased. Statistics, hits and what is left of the scans still say the same.

use std::collections::BTreeMap;

use ::privacy::worker::work;
use anyhow::{Context, Result, ensure};
use axum::http::Method;
use control::worker::scan_retention;
use serde_json::{Value, json};
use shared::time::Clock;
use statistics::service::roll_ups;
use tests::{db::Engine, product::PHONE, repetitions};
use tokio_util::sync::CancellationToken;

use super::{
    super::{Api, paging::next},
    HOUR, ROBOT, api, ask, backfill, linked, scan, take,
};

crate::on_both_engines!(a_year_passes);

const DAY: i64 = 24 * HOUR;

/// Days that pass; more than statistics keep hours.
const DAYS: i64 = 430;

/// Each so many days there are scans.
fn every() -> i64 {
    repetitions(6, 3)
}

/// Days for which scans are kept, and people in them.
const KEPT: i64 = 60;
const PERSONAL: i64 = 30;

/// Days by which what goes by whole days may be late: it goes when the day is over.
const LATE: i64 = 2;

/// The day on which a network is erased, from so many days before.
const ERASED: i64 = 201;
const ERASED_DAYS: i64 = 5;

/// The days after which everything is looked at.
const CHECKED: [i64; 3] = [ERASED, 300, DAYS - 1];

/// One address in each country.
const ADDRESSES: [(&str, &str); 3] = [("CH", "203.0.113.7"), ("DE", "203.0.113.200"), ("US", "198.51.100.9")];

/// Scans of people and of robots, by day and country.
type Counted = BTreeMap<(i64, String), (i64, i64)>;

struct Year {
    api: Api,
    counted: Counted,
    /// The sequence number of the next scan.
    seq: u64,
    /// From when to when the network was erased.
    erased: Option<(i64, i64)>,
}

impl Year {
    async fn new(engine: Engine) -> Result<Self> {
        let api = api(engine).await?;
        linked(&api, "ONE", &[]).await?;
        backfill::finish(&api).await?;
        // A month goes when it is over for every account.
        let (body, other) = (
            json!({"scanRetentionDays": KEPT, "personalDataDays": PERSONAL}),
            json!({"scanRetentionDays": KEPT}),
        );
        for (key, account, body) in
            [(&api.key, api.made.account, body), (&api.other_key, api.other_account, other)]
        {
            api.call_as(key, Method::PUT, &format!("/accounts/{account}"), Some(body)).await?.must_be(200)?;
        }
        Ok(Self { api, counted: Counted::new(), seq: 0, erased: None })
    }

    fn now(&self) -> i64 {
        self.api.made.app.core.clock.now().0
    }

    /// Scans of a day: one to three by a phone in each country, and a robot each week.
    async fn scan(&mut self, day: i64) -> Result<()> {
        let (now, mut records) = (self.now(), Vec::new());
        for (n, (country, address)) in (0..).zip(ADDRESSES) {
            let people = 1 + (day / every() + n) % 3;
            let robots = i64::from(day % 7 == 0);
            records.extend((0..people).map(|_| scan("ONE", now, address, PHONE)));
            records.extend((0..robots).map(|_| scan("ONE", now, address, ROBOT)));
            let counts = self.counted.entry((now / DAY, country.to_owned())).or_default();
            *counts = (counts.0 + people, counts.1 + robots);
        }
        take(&self.api, self.seq, &records).await?;
        self.seq += records.len() as u64;
        Ok(())
    }

    async fn erase(&mut self) -> Result<()> {
        let (from, to) = (self.now() - ERASED_DAYS * DAY, self.now() + HOUR);
        let body = json!({"network": "203.0.113.0/24", "from": from, "to": to});
        let answer = self.api.call(Method::POST, "/privacy/erasures", Some(body)).await?;
        ensure!(answer.status.is_success(), "{answer:?}");
        self.erased = Some((from, to));
        self.work().await
    }

    async fn work(&self) -> Result<()> {
        while work(&self.api.made.app.privacy, 3, &CancellationToken::new()).await? {}
        Ok(())
    }

    /// Lets a day pass, with all that runs once a day. What a day has to cut or purge may wait for a later one, which then does
    /// it for all.
    async fn pass(&self, day: i64) -> Result<()> {
        let (app, is_cut) = (&self.api.made.app, day % repetitions(7, 1) == 0 || CHECKED.contains(&day));
        self.api.made.clock.advance(DAY);
        if is_cut {
            // A new cut begins when the one before has ended.
            self.work().await?;
        }
        scan_retention::run(app).await?;
        if is_cut {
            roll_ups::purge(&app.core).await?;
            roll_ups::purge_devices(&app.core).await?;
            self.work().await?;
        }
        Ok(())
    }

    /// Counts of statistics, of whole days.
    async fn asked(&self, from: i64, to: i64) -> Result<Counted> {
        let query = format!("from={}&to={}&interval=day&groupBy=country&top=10", from * DAY, to * DAY);
        let answer = ask(&self.api, &query).await?;
        let mut found = Counted::new();
        for row in answer["rows"].as_array().context("rows")? {
            let number = |name: &str| row[name].as_i64().with_context(|| row.to_string());
            let country = row["country"].as_str().with_context(|| row.to_string())?;
            let counts = (number("scans")?, number("robots")?);
            found.insert((number("from")? / DAY, country.to_owned()), counts);
        }
        Ok(found)
    }

    /// The scans that are left, from the list.
    async fn left(&self) -> Result<Vec<Value>> {
        let (mut url, mut all) = ("/actions/implicitScans?perPage=100&context=true".to_owned(), Vec::new());
        loop {
            let answer = self.api.get(&url).await?.must_be(200)?;
            all.extend(answer.json().as_array().context("a list")?.iter().cloned());
            let Some(more) = next(&answer) else { return Ok(all) };
            url = more;
        }
    }

    async fn check(&self) -> Result<()> {
        let today = self.now() / DAY;
        let between = |from: i64, to: i64| -> Counted {
            let days = self.counted.iter().filter(|((day, _), _)| (from..to).contains(day));
            days.map(|(key, counts)| (key.clone(), *counts)).collect()
        };
        // Both the days of which there are hours, and those before.
        for (from, to) in [(today - 390, today + 1), (today - DAYS, today - DAYS + 30)] {
            let (found, expected) = (self.asked(from, to).await?, between(from, to));
            ensure!(found == expected, "{from} to {to}: {found:?} and {expected:?}");
        }
        let people: i64 = self.counted.values().map(|(people, _)| people).sum();
        let hits = self.api.get("/redirections/ONE").await?.json()["hits"].as_i64();
        ensure!(hits == Some(people), "{hits:?} hits of {people}");

        let mut raw = Counted::new();
        for scan in self.left().await? {
            let at = scan["timestamp"].as_i64().context("timestamp")?;
            let (day, country) = (at / DAY, scan["context"]["countryCode"].as_str().context("country")?);
            let robots = i64::from(scan["customFields"]["bot"] == true);
            let counts = raw.entry((day, country.to_owned())).or_default();
            *counts = (counts.0 + 1 - robots, counts.1 + robots);
            ensure!(day >= today - KEPT - LATE, "a scan of day {day} is left on day {today}");

            let is_erased = self.erased.is_some_and(|(from, to)| (from..to).contains(&at) && country != "US");
            let is_there = scan["context"].get("ipAddress").is_some();
            if is_erased || day < today - PERSONAL - LATE {
                ensure!(!is_there, "{today}: {scan}");
            } else if day > today - PERSONAL {
                ensure!(is_there, "{today}: {scan}");
            }
        }
        let first = raw.keys().next().context("no scan is left")?.0;
        ensure!(raw == between(first, today + 1), "what is left is not what was counted: {raw:?}");
        ensure!(first <= today - KEPT + every() || first == self.counted.keys().next().context("none")?.0);
        let months = self.api.made.app.actions.scans.pool.describe().await?.months;
        let is_over = |end: i64| end + (KEPT + LATE) * DAY < self.now();
        ensure!(!months.iter().any(|month| is_over(month.end().0)), "{months:?}");
        // Three addresses with a phone each have a device of a day.
        let devices = backfill::count(&self.api, "scan_devices").await?;
        ensure!(devices <= 3 * 5, "{devices} devices");
        Ok(())
    }
}

async fn a_year_passes(engine: Engine) -> Result<()> {
    let mut year = Year::new(engine).await?;
    for day in 0..DAYS {
        if day % every() == 0 {
            year.scan(day).await?;
        }
        if day == ERASED {
            year.erase().await?;
        }
        year.pass(day).await?;
        if CHECKED.contains(&day) {
            year.check().await.with_context(|| format!("after day {day}"))?;
        }
    }
    Ok(())
}
