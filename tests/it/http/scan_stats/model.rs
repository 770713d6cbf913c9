//! Random scans, late, doubled and out of order, against a count over the stored actions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, Result, ensure};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use tests::{db::Engine, product::PHONE};
use tokio::{runtime::Handle, task::block_in_place};

use super::{super::paging::next, *};

const LINKS: [&str; 3] = ["ONE", "TWO", "THREE"];
const ADDRESSES: [&str; 5] = ["203.0.113.1", "203.0.113.2", "203.0.113.200", "198.51.100.9", "192.0.2.1"];
const AGENTS: [&str; 4] = [PHONE, ANDROID, DESKTOP, ROBOT];
const LANGUAGES: [&str; 3] = ["de-CH", "en", ""];

/// 2025-10-27 12:00 in Berlin, behind the night in which the clock goes back.
const LATEST: i64 = 1_761_562_800_000;

/// The indices of link, address, agent and language, and how many minutes before [`LATEST`] it was.
type Drawn = (usize, usize, usize, usize, i64);

/// A question: interval, time zone, and the members that are grouped by.
const QUESTIONS: [(Option<&str>, &str, &[&str]); 9] = [
    (None, "UTC", &[]),
    (Some("hour"), "Europe/Berlin", &[]),
    (Some("day"), "Europe/Berlin", &["country"]),
    (Some("day"), "America/New_York", &["product"]),
    (Some("week"), "Europe/Berlin", &["device"]),
    (Some("month"), "Pacific/Auckland", &["language"]),
    (Some("hour"), "UTC", &["link"]),
    (Some("day"), "Africa/Cairo", &["product", "country"]),
    (None, "Europe/Berlin", &["country", "region"]),
];

/// Scans of people, by new devices, and of robots.
type Counted = (i64, i64, i64);

/// A stored scan as statistics see it.
struct Stored {
    at: i64,
    members: BTreeMap<&'static str, String>,
    is_robot: bool,
    device: String,
}

/// Every stored scan, by the pages of the list.
async fn stored(api: &Api) -> Result<Vec<Stored>> {
    let mut found = Vec::new();
    let mut url = "/actions/implicitScans?perPage=100&context=true&sortOrder=ASCENDING".to_owned();
    loop {
        let answer = api.get(&url).await?;
        ensure!(answer.status == 200, "{answer:?}");
        for action in answer.json().as_array().context("a list")? {
            let context = |name: &str| action["context"][name].as_str().unwrap_or_default().to_owned();
            let system = context("operatingSystemName");
            let device = match system.as_str() {
                "" => "",
                "iPhone" | "Android" => "phone",
                _ => "desktop",
            };
            let field = |name: &str| action["customFields"][name].as_str().unwrap_or_default().to_owned();
            found.push(Stored {
                at: action["timestamp"].as_i64().context("timestamp")?,
                members: BTreeMap::from([
                    ("country", context("countryCode")),
                    ("region", context("region")),
                    ("device", device.to_owned()),
                    ("language", context("language").get(..2).unwrap_or_default().to_owned()),
                    ("product", action["product"].as_str().unwrap_or_default().to_owned()),
                    ("link", format!("{}/{}", field("shortDomain"), field("shortId"))),
                ]),
                is_robot: action["customFields"]["bot"] == true,
                device: format!("{} {}", context("ipAddress"), context("userAgent")),
            });
        }
        let Some(following) = next(&answer) else { return Ok(found) };
        url = following;
    }
}

/// When the period that a scan is in begins, within the range of a question.
fn beginning(at: i64, interval: Option<&str>, zone: &TimeZone, from: i64) -> Result<i64> {
    let local = Timestamp::from_millisecond(at)?.to_zoned_datetime(zone.clone());
    let day = local.start_of_day()?;
    let begin = match interval {
        None => return Ok(from),
        Some("hour") => return Ok(at.div_euclid(HOUR) * HOUR),
        Some("day") => day,
        Some("week") => {
            let past = i64::from(local.weekday().to_monday_zero_offset());
            local.date().checked_sub(past.days())?.to_zoned_datetime(zone.clone())?
        }
        Some(_) => local.date().first_of_month().to_zoned_datetime(zone.clone())?,
    };
    Ok(begin.timestamp().as_millisecond().max(from))
}

async fn check(api: &Api, scans: &[Stored]) -> Result<()> {
    let (from, to) = (LATEST - 80 * HOUR, LATEST + HOUR);
    for (interval, zone, members) in QUESTIONS {
        let tz = TimeZone::get(zone)?;
        let mut expected: BTreeMap<(i64, Vec<String>), Counted> = BTreeMap::new();
        // Which of several scans of a device came first is for the intake to say: only their number is compared.
        let mut devices = BTreeSet::new();
        for one in scans.iter().filter(|one| (from..to).contains(&one.at)) {
            let values = members.iter().map(|name| one.members[name].clone()).collect();
            let row = expected.entry((beginning(one.at, interval, &tz, from)?, values)).or_default();
            if one.is_robot {
                row.2 += 1;
            } else {
                row.0 += 1;
                devices.insert((one.at.div_euclid(24 * HOUR), one.device.clone()));
            }
        }
        let interval = interval.map(|interval| format!("&interval={interval}")).unwrap_or_default();
        let query =
            format!("from={from}&to={to}&timeZone={zone}&groupBy={}&top=100{interval}", members.join(","));
        let answer = ask(api, &query).await?;
        let mut found: BTreeMap<(i64, Vec<String>), Counted> = BTreeMap::new();
        let mut new_devices = 0;
        for row in answer["rows"].as_array().context("rows")? {
            let number = |name: &str| row[name].as_i64().with_context(|| format!("{name} in {row}"));
            let values =
                members.iter().map(|name| row[*name].as_str().unwrap_or_default().to_owned()).collect();
            let counted = (number("scans")?, 0, number("robots")?);
            new_devices += number("newDevices")?;
            ensure!(found.insert((number("from")?, values), counted).is_none(), "twice: {row}");
        }
        assert_eq!(found, expected, "{query}");
        assert_eq!(new_devices, devices.len() as i64, "{query}");
        let totals = expected.values().fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.2));
        assert_eq!(
            (answer["totals"]["scans"].as_i64(), answer["totals"]["robots"].as_i64()),
            (Some(totals.0), Some(totals.1)),
            "{query}"
        );
    }
    Ok(())
}

/// Hands the scans over in batches that overlap and come twice, of two boots that come in turns.
async fn run(api: &Api, drawn: &[Drawn], sizes: &[usize], boot: u64) -> Result<()> {
    let record = |&(link, address, agent, language, minutes): &Drawn| {
        let record = scan(LINKS[link], LATEST - minutes * 60_000, ADDRESSES[address], AGENTS[agent]);
        ScanRecord {
            language: Some(LANGUAGES[language]).filter(|tag| !tag.is_empty()).map(Into::into),
            ..record
        }
    };
    let records: Vec<ScanRecord> = drawn.iter().map(record).collect();
    let halves = records.split_at(records.len() / 2);
    let halves = [halves.0, halves.1];
    let mut sent = [0, 0];
    for (turn, size) in sizes.iter().copied().chain([records.len(), records.len()]).enumerate() {
        let half = turn % 2;
        sent[half] = (sent[half] + size).min(halves[half].len());
        // What was stored comes again, and then the whole batch once more.
        let records = halves[half][..sent[half]].to_vec();
        let batch = ScanBatch { edge: "e1".into(), boot: boot + half as u64, first_seq: 0, records };
        ingest(&api.made.app, &batch).await?;
        ingest(&api.made.app, &batch).await?;
    }
    check(api, &stored(api).await?).await
}

async fn statistics_equal_a_count_over_the_stored_scans(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    for link in LINKS {
        linked(&api, link, &[]).await?;
    }
    api.made.clock.advance(LATEST - 1_760_000_000_000);
    let drawn = (0..LINKS.len(), 0..ADDRESSES.len(), 0..AGENTS.len(), 0..LANGUAGES.len(), 0..70 * 60_i64);
    let strategy = (prop::collection::vec(drawn, 1..60), prop::collection::vec(1..30_usize, 0..5));
    let boots = AtomicU64::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 12,
        failure_persistence: None,
        max_shrink_iters: 20,
        ..Config::default()
    });
    let handle = Handle::current();
    // The scans of all cases add up: each is one more state of the same roll-ups.
    let result = runner.run(&strategy, |(drawn, sizes)| {
        let boot = boots.fetch_add(2, Ordering::Relaxed);
        block_in_place(|| handle.block_on(run(&api, &drawn, &sizes, boot)))
            .map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    result.map_err(|error| anyhow::anyhow!("{error}"))
}

crate::on_both_engines!(statistics_equal_a_count_over_the_stored_scans);
