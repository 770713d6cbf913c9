//! Random scans, late, doubled, erased and out of order, and sums of them, against a count over the stored actions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use tests::{db::Engine, product::PHONE, repetitions};
use tokio::{runtime::Handle, sync::Mutex, task::block_in_place};

use super::{super::paging::next, *};

/// Links, and of which of the two projects they are; one names a project twice.
const LINKS: [(&str, &[usize]); 3] = [("ONE", &[]), ("TWO", &[0]), ("THREE", &[0, 1, 0])];
const ADDRESSES: [&str; 5] = ["203.0.113.1", "203.0.113.2", "203.0.113.200", "198.51.100.9", "192.0.2.1"];
const AGENTS: [&str; 4] = [PHONE, ANDROID, DESKTOP, ROBOT];
const LANGUAGES: [&str; 3] = ["de-CH", "en", ""];

/// 2025-10-27 12:00 in Berlin, behind the night in which the clock goes back.
const LATEST: i64 = 1_761_562_800_000;

/// The range of most questions; by the hour it is shorter.
const DAYS: i64 = 40;

/// The indices of link, address, agent and language, how many minutes before [`LATEST`] it was, and the number of scans
/// of a sum; 0 for a scan.
type Drawn = (usize, usize, usize, usize, i64, u32);

/// A question: interval, time zone, the members that are grouped by, and the project that is filtered by.
type Question = (Option<&'static str>, &'static str, &'static [&'static str], Option<usize>);

const QUESTIONS: [Question; 22] = [
    (None, "UTC", &[], None),
    (Some("hour"), "Europe/Berlin", &[], None),
    (Some("day"), "UTC", &["country"], None),
    (Some("day"), "Europe/Berlin", &["country"], None),
    (Some("day"), "America/New_York", &["product"], None),
    (Some("day"), "Pacific/Auckland", &["device"], None),
    (None, "Australia/Lord_Howe", &["device"], None),
    (Some("week"), "Europe/Berlin", &["device"], None),
    (Some("month"), "Pacific/Auckland", &["language"], None),
    (Some("day"), "UTC", &["link"], None),
    (Some("week"), "UTC", &["link"], Some(0)),
    (None, "Asia/Kolkata", &["link"], None),
    (Some("day"), "Africa/Cairo", &["product", "country"], None),
    (None, "Europe/Berlin", &["country", "region"], None),
    (None, "Asia/Kolkata", &["country"], None),
    (None, "Asia/Kathmandu", &["product"], None),
    (Some("day"), "Europe/Berlin", &["project"], None),
    (Some("hour"), "UTC", &["project"], None),
    (Some("day"), "Europe/Berlin", &["country"], Some(0)),
    (Some("week"), "America/New_York", &["product", "device"], Some(1)),
    (None, "UTC", &[], Some(0)),
    (Some("hour"), "UTC", &["product"], Some(1)),
];

/// Scans of people, by new devices, and of robots.
type Counted = (i64, i64, i64);

/// A scan, or a sum of them, as statistics see it.
#[derive(Debug, Clone)]
struct Stored {
    at: i64,
    members: BTreeMap<&'static str, String>,
    projects: BTreeSet<usize>,
    is_robot: bool,
    count: i64,
    /// The device, of one scan of a person.
    device: Option<String>,
}

/// Everything that was ever stored: by the ids of actions, and sums, of which there are none.
#[derive(Debug, Default)]
struct Model {
    scans: BTreeMap<String, Stored>,
    sums: Vec<Stored>,
    /// Ids of actions that were deleted: they count as before.
    erased: BTreeSet<String>,
    boot: u64,
}

impl Model {
    fn all(&self) -> impl Iterator<Item = &Stored> {
        self.scans.values().chain(&self.sums)
    }
}

/// The API with its links, their products, and the two projects.
struct World {
    api: Api,
    products: Vec<String>,
    projects: Vec<String>,
}

/// Notes every stored scan, by the pages of the list.
async fn note(world: &World, model: &mut Model) -> Result<()> {
    let mut url = "/actions/implicitScans?perPage=100&context=true&sortOrder=ASCENDING".to_owned();
    loop {
        let answer = world.api.get(&url).await?.must_be(200)?;
        for action in answer.json().as_array().context("a list")? {
            let context = |name: &str| action["context"][name].as_str().unwrap_or_default().to_owned();
            let system = context("operatingSystemName");
            let device = match system.as_str() {
                "" => "",
                "iPhone" | "Android" => "phone",
                _ => "desktop",
            };
            let field = |name: &str| action["customFields"][name].as_str().unwrap_or_default().to_owned();
            let is_robot = action["customFields"]["bot"] == true;
            let link = LINKS.iter().find(|(id, _)| *id == field("shortId")).context("link")?;
            let one = Stored {
                at: action["timestamp"].as_i64().context("timestamp")?,
                members: BTreeMap::from([
                    ("country", context("countryCode")),
                    ("region", context("region")),
                    ("device", device.to_owned()),
                    ("language", context("language").get(..2).unwrap_or_default().to_owned()),
                    ("product", action["product"].as_str().unwrap_or_default().to_owned()),
                    ("link", format!("{}/{}", field("shortDomain"), field("shortId"))),
                ]),
                projects: link.1.iter().copied().collect(),
                is_robot,
                count: 1,
                device: (!is_robot).then(|| format!("{} {}", context("ipAddress"), context("userAgent"))),
            };
            model.scans.insert(text(action, "id")?, one);
        }
        let Some(following) = next(&answer) else { return Ok(()) };
        url = following;
    }
}

/// A sum of scans as statistics see it.
fn sum(world: &World, link: usize, at: i64, count: u32) -> Stored {
    let (short_id, projects) = LINKS[link];
    let mut members: BTreeMap<&'static str, String> =
        ["country", "region", "device", "language"].map(|name| (name, String::new())).into();
    members.insert("product", world.products[link].clone());
    members.insert("link", format!("tn.gg/{short_id}"));
    let projects = projects.iter().copied().collect();
    Stored { at, members, projects, is_robot: false, count: i64::from(count), device: None }
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

async fn check(world: &World, model: &Model) -> Result<()> {
    for question in QUESTIONS {
        check_one(world, model, question).await.with_context(|| format!("{question:?}"))?;
    }
    Ok(())
}

async fn check_one(world: &World, model: &Model, (interval, zone, members, project): Question) -> Result<()> {
    let tz = TimeZone::get(zone)?;
    let by_link = members.contains(&"link");
    // By link a range has at most 31 days.
    let hours = match interval {
        // From midnight in UTC: who came before the range on its first day is not new in it.
        Some("hour") => 83,
        _ if by_link => 29 * 24,
        _ => DAYS * 24,
    };
    let (mut from, mut to) = (LATEST - hours * HOUR, LATEST + HOUR);
    if interval.is_none() {
        // A date of the zone, which may begin within an hour of UTC: that hour is whole in the range.
        let date = Timestamp::from_millisecond(from)?.to_zoned_datetime(tz.clone()).date();
        from = date.to_zoned_datetime(tz.clone())?.timestamp().as_millisecond();
    }
    let asked = (from, to);
    let unit = if by_link { 24 * HOUR } else { HOUR };
    (from, to) = (from.div_euclid(unit) * unit, (to + unit - 1).div_euclid(unit) * unit);
    let by_project = members == ["project"];
    let today = LATEST.div_euclid(24 * HOUR);
    let mut expected: BTreeMap<(i64, Vec<String>), Counted> = BTreeMap::new();
    // Which of several scans of a device came first is for the intake to say: only their number is compared.
    let mut devices = BTreeSet::new();
    let mut totals = (0, 0);
    for one in model.all().filter(|one| (from..to).contains(&one.at)) {
        if project.is_some_and(|project| !one.projects.contains(&project)) {
            continue;
        }
        let counts = if one.is_robot { (0, one.count) } else { (one.count, 0) };
        totals = (totals.0 + counts.0, totals.1 + counts.1);
        let groups: Vec<Vec<String>> = if by_project {
            one.projects.iter().map(|index| vec![world.projects[*index].clone()]).collect()
        } else {
            vec![members.iter().map(|name| one.members[name].clone()).collect()]
        };
        for values in groups {
            let row = expected.entry((beginning(one.at, interval, &tz, from)?, values)).or_default();
            *row = (row.0 + counts.0, 0, row.2 + counts.1);
        }
        let day = one.at.div_euclid(24 * HOUR);
        if let Some(device) = one.device.as_ref().filter(|_| day >= today - 3) {
            devices.insert((day, device.clone()));
        }
    }
    let interval = interval.map(|interval| format!("&interval={interval}")).unwrap_or_default();
    let filter =
        project.map(|index| format!("&filter=project={}", world.projects[index])).unwrap_or_default();
    let query = format!(
        "from={}&to={}&timeZone={zone}&groupBy={}&top=100{interval}{filter}",
        asked.0,
        asked.1,
        members.join(",")
    );
    let answer = ask(&world.api, &query).await?;
    ensure!((answer["from"].as_i64(), answer["to"].as_i64()) == (Some(from), Some(to)), "{query}: {answer}");
    let mut found: BTreeMap<(i64, Vec<String>), Counted> = BTreeMap::new();
    let mut new_devices = 0;
    for row in answer["rows"].as_array().context("rows")? {
        let number = |name: &str| row[name].as_i64().with_context(|| format!("{name} in {row}"));
        let values = members.iter().map(|name| row[*name].as_str().unwrap_or_default().to_owned()).collect();
        let counted = (number("scans")?, 0, number("robots")?);
        new_devices += number("newDevices")?;
        ensure!(found.insert((number("from")?, values), counted).is_none(), "twice: {row}");
    }
    assert_eq!(found, expected, "{query}");
    if project.is_none() && !by_project {
        assert_eq!(new_devices, devices.len() as i64, "{query}");
    }
    assert_eq!(
        (answer["totals"]["scans"].as_i64(), answer["totals"]["robots"].as_i64()),
        (Some(totals.0), Some(totals.1)),
        "{query}"
    );
    // With few groups shown, the others are what is left, also where a group is in several periods.
    let rows = expected.values().fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.2));
    let few = ask(&world.api, &query.replace("top=100", "top=1")).await?;
    let mut sum =
        (few["other"]["scans"].as_i64().context("other")?, few["other"]["robots"].as_i64().context("other")?);
    for row in few["rows"].as_array().context("rows")? {
        sum = (
            sum.0 + row["scans"].as_i64().context("scans")?,
            sum.1 + row["robots"].as_i64().context("robots")?,
        );
    }
    assert_eq!(sum, rows, "{query}: {few}");
    Ok(())
}

/// Hands the scans over in batches that overlap and come twice, of two boots that come in turns, and erases some.
async fn run(world: &World, model: &Mutex<Model>, drawn: &[Drawn], sizes: &[usize]) -> Result<()> {
    let mut model = model.lock().await;
    let boot = model.boot;
    model.boot += 2;
    let record = |&(link, address, agent, language, minutes, count): &Drawn| {
        let record = scan(LINKS[link].0, LATEST - minutes * 60_000, ADDRESSES[address], AGENTS[agent]);
        ScanRecord {
            language: Some(LANGUAGES[language]).filter(|tag| !tag.is_empty()).map(Into::into),
            count: count.try_into().ok(),
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
        ingest(&world.api.made.app, &batch).await?;
        ingest(&world.api.made.app, &batch).await?;
    }
    let sums = drawn.iter().filter(|one| one.5 > 0);
    model.sums.extend(sums.map(|one| sum(world, one.0, LATEST - one.4 * 60_000, one.5)));
    note(world, &mut model).await?;
    check(world, &model).await?;
    let left: Vec<String> = model.scans.keys().filter(|id| !model.erased.contains(*id)).cloned().collect();
    for id in left.into_iter().step_by(7) {
        let gone = world.api.call(Method::DELETE, &format!("/actions/implicitScans/{id}"), None).await?;
        ensure!(gone.status.is_success(), "{gone:?}");
        model.erased.insert(id);
    }
    check(world, &model).await
}

async fn statistics_equal_a_count_over_the_stored_scans(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let mut world = World { products: Vec::new(), projects: Vec::new(), api };
    for _ in 0..2 {
        world.projects.push(super::super::operators::project(&world.api).await?);
    }
    for (link, projects) in LINKS {
        let projects: Vec<&str> = projects.iter().map(|index| world.projects[*index].as_str()).collect();
        let product = linked(&world.api, link, &projects).await?;
        world.products.push(product);
    }
    world.api.made.clock.advance(LATEST - 1_760_000_000_000);
    let minutes = prop_oneof![3 => 0..70 * 60_i64, 2 => 0..DAYS * 24 * 60];
    let count = prop_oneof![5 => Just(0_u32), 1 => 1..40_u32];
    let drawn = (0..LINKS.len(), 0..ADDRESSES.len(), 0..AGENTS.len(), 0..LANGUAGES.len(), minutes, count);
    let strategy = (prop::collection::vec(drawn, 1..60), prop::collection::vec(1..30_usize, 0..5));
    let model = Mutex::new(Model::default());
    let mut runner = TestRunner::new(Config {
        cases: repetitions(5, 8),
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::default()
    });
    let handle = Handle::current();
    // The scans of all cases add up: each is one more state of the same roll-ups.
    let result = runner.run(&strategy, |(drawn, sizes)| {
        block_in_place(|| handle.block_on(run(&world, &model, &drawn, &sizes)))
            .map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    result.map_err(|error| anyhow::anyhow!("{error}"))?;

    // Of what is above the quota no action is stored, and nothing is counted.
    let mut model = model.into_inner();
    let uri = format!("/platform/accounts/{}/quotas", world.api.made.account);
    let stored = model.scans.len();
    // Of a day counts what comes after the limit was set.
    let quota = json!({"scansPerDay": 3});
    world.api.call_as(&world.api.platform_key, Method::PUT, &uri, Some(quota)).await?.must_be(200)?;
    let records: Vec<_> =
        (0..9).map(|n| scan(LINKS[n % 3].0, LATEST - n as i64, ADDRESSES[0], PHONE)).collect();
    let batch = ScanBatch { edge: "e2".into(), boot: 1, first_seq: 0, records };
    ingest(&world.api.made.app, &batch).await?;
    note(&world, &mut model).await?;
    ensure!(model.scans.len() == stored + 3, "{stored} and {}", model.scans.len());
    check(&world, &model).await
}

crate::on_both_engines!(statistics_equal_a_count_over_the_stored_scans);
