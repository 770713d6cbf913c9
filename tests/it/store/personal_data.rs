//! What intake stores of scans under each setting of their account, and what follows from them nevertheless.

use anyhow::{Context, Result, ensure};
use control::worker::ingest_scans::ingest;
use kernel::{
    domain::{listing::ListRequest, page::PageRequest},
    store::Ctx,
};
use serde_json::{Map, Value, json};
use shared::{
    geo::CityDatabase,
    id::AccountId,
    personal_data::PersonalData,
    short_url::{Scheme, ShortDomain},
    wire::{
        scan::{RedactedClient, ScanRecord},
        stream::Change,
    },
};
use sqlx::{AssertSqlSafe, Connection};
use tenants::{
    domain::tenant::AccountChange,
    service::tenants as service,
    store::{accounts, tenants as table},
};
use tests::{
    db::{Engine, Location, TestApp, random16},
    mmdb,
};

use super::{
    links::count,
    redirections::{create, execute, product},
    scan_steps::take_half,
    scans::{PHONE, batch, record},
};

super::super::on_both_engines!(
    a_scan_is_cut_to_what_its_account_keeps,
    a_redacted_scan_of_an_edge_is_counted,
    a_batch_that_was_half_taken_counts_its_devices_once,
    edges_hear_of_the_setting_with_the_domains,
    accounts_that_were_there_keep_everything,
);
super::super::on_clickhouse!(
    a_scan_is_cut_to_what_its_account_keeps,
    a_batch_that_was_half_taken_counts_its_devices_once,
);

/// A geography with a point that is more exact than what is kept.
async fn app(engine: Engine) -> Result<TestApp> {
    let place = json!({"city": "Bern", "state1": "Bern", "country_code": "CH", "latitude": 46.948_125,
        "longitude": 7.447_5});
    let geo = CityDatabase::parse(mmdb::database(6, &[("203.0.113.0/24", place)]))?;
    TestApp::with(engine, |parts| parts.geo_ip = Some(std::sync::Arc::new(geo))).await
}

async fn keep(made: &TestApp, kept: PersonalData) -> Result<()> {
    let change = AccountChange { personal_data: Some(kept), ..AccountChange::default() };
    service::update_account(&made.app.core, &made.caller(), made.account.as_str(), change).await?;
    Ok(())
}

/// When the clock of the tests begins: devices of days that are over do not count.
const NOW: i64 = 1_760_000_000_000;

fn scan(ip: &str, after: i64) -> Result<ScanRecord> {
    Ok(ScanRecord { ip: ip.parse()?, ..record("A", PHONE, NOW + after) })
}

/// The documents of all scans, oldest first.
async fn documents(made: &TestApp) -> Result<Vec<Map<String, Value>>> {
    let request = ListRequest {
        page: PageRequest { per_page: 100, ..PageRequest::default() },
        ..ListRequest::default()
    };
    let scope = actions::service::actions::Scope::Account;
    let listed =
        actions::service::actions::list(&made.app.actions, &made.caller(), scope, "implicitScans", &request)
            .await?;
    Ok(listed.items.into_iter().rev().map(|action| action.members).collect())
}

const DEVICES: &str = "SELECT COUNT(*) FROM scan_devices";

async fn a_scan_is_cut_to_what_its_account_keeps(engine: Engine) -> Result<()> {
    let made = app(engine).await?;
    let product = product(&made).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let mut seq = 0;
    for (kept, ip, address, agent, latitude) in [
        (PersonalData::Full, "203.0.113.77", json!("203.0.113.77"), json!(PHONE), json!(46.948_125)),
        (
            PersonalData::Truncated,
            "203.0.113.77",
            json!("203.0.113.0"),
            json!("Safari/17 (iPhone/17)"),
            json!(46.95),
        ),
        (
            PersonalData::Truncated,
            "2001:db8:1:2:3::4",
            json!("2001:db8:1::"),
            json!("Safari/17 (iPhone/17)"),
            json!(null),
        ),
        (PersonalData::None, "203.0.113.77", json!(null), json!(null), json!(null)),
    ] {
        keep(&made, kept).await?;
        // As an edge of any release sends it.
        ingest(&made.app, &batch(1, seq, &[scan(ip, 1_000 + seq as i64)?])).await?;
        seq += 1;
        let all = documents(&made).await?;
        ensure!(all.len() == usize::try_from(seq)?);
        let last = Value::Object(all.last().context("scan")?.clone());
        ensure!(
            last["context"]["ipAddress"] == address && last["context"]["userAgent"] == agent,
            "{kept}: {last}"
        );
        ensure!(last["location"]["latitude"] == latitude, "{kept}: {last}");
        ensure!(last["context"]["userAgentName"] == "Safari", "{kept}: {last}");
        let is_located = ip.starts_with("203.");
        let country = if is_located { json!("CH") } else { json!(null) };
        ensure!(last["context"]["countryCode"] == country, "{kept}: {last}");
        let source = if is_located && kept != PersonalData::None { "geoIp" } else { "unknown" };
        ensure!(last["locationSource"] == source, "{kept}: {last}");
    }
    let first = documents(&made).await?.swap_remove(0);
    ensure!(first["context"]["ipAddress"] == "203.0.113.77", "what was stored stays: {first:?}");
    ensure!(count(&made, DEVICES).await? == 2, "devices are counted before the cut");
    // An account that is another's has its own setting.
    let other = AccountId::new(1, random16()?);
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, other, "Other", true, 1).await?;
    tx.commit().await?;
    let mut conn = made.app.core.db.read().await?;
    let all = table::list_personal_data(&mut conn, &[made.account, other]).await?;
    ensure!(all == [(made.account, PersonalData::None), (other, PersonalData::Truncated)].into(), "{all:?}");
    Ok(())
}

async fn a_redacted_scan_of_an_edge_is_counted(engine: Engine) -> Result<()> {
    let made = app(engine).await?;
    let product = product(&made).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let redacted = |device: Option<i64>, bot: bool| -> Result<ScanRecord> {
        let client = RedactedClient {
            bot,
            device,
            name: Some("Safari".into()),
            system: Some("iPhone".into()),
            city: Some("Bern".into()),
            region: None,
            country_code: Some("CH".into()),
            time_zone: None,
        };
        Ok(ScanRecord { user_agent: None, client: Some(Box::new(client)), ..scan("0.0.0.0", 1_000)? })
    };
    let records = [
        redacted(Some(1), false)?,
        redacted(Some(1), false)?,
        redacted(Some(2), false)?,
        redacted(None, true)?,
    ];
    // Also where the account has changed its setting since.
    for kept in [PersonalData::None, PersonalData::Full] {
        keep(&made, kept).await?;
        let boot = if kept == PersonalData::Full { 2 } else { 1 };
        ensure!(ingest(&made.app, &batch(boot, 0, &records)).await?.next_seq == 4);
    }
    let all = documents(&made).await?;
    ensure!(all.len() == 8);
    for scan in &all {
        let context = Value::Object(scan.clone())["context"].take();
        ensure!(context.get("ipAddress").is_none() && context.get("userAgent").is_none(), "{context}");
        ensure!(context["countryCode"] == "CH" && context["city"] == "Bern", "{context}");
        ensure!(!scan.contains_key("location") && scan["locationSource"] == "unknown", "{scan:?}");
    }
    ensure!(all.iter().filter(|scan| scan["customFields"]["bot"] == true).count() == 2);
    ensure!(count(&made, DEVICES).await? == 2);
    let sql = "SELECT CAST(SUM(hits) AS BIGINT) FROM redirections";
    ensure!(count(&made, sql).await? == 6, "robots do not count");
    Ok(())
}

async fn a_batch_that_was_half_taken_counts_its_devices_once(engine: Engine) -> Result<()> {
    let made = app(engine).await?;
    let product = product(&made).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    keep(&made, PersonalData::Truncated).await?;
    // Two devices of one network: what is stored does not tell them apart.
    let records = [scan("203.0.113.1", 1_000)?, scan("203.0.113.2", 1_001)?];
    let first = batch(1, 0, &records);
    take_half(&made, &first).await?;
    ensure!(ingest(&made.app, &first).await?.next_seq == 2);
    ensure!(count(&made, DEVICES).await? == 2);
    ensure!(documents(&made).await?.len() == 2);
    Ok(())
}

async fn edges_hear_of_the_setting_with_the_domains(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    accounts::insert_domain(&mut tx, made.account, &ShortDomain::new(Scheme::Https, "two.gg")?).await?;
    tx.commit().await?;
    let log = async || -> Result<Vec<(String, Option<PersonalData>)>> {
        let mut conn = made.app.core.db.read().await?;
        let head = redirects::store::log::load_head(&mut conn).await?;
        let events = redirects::store::log::list_after(&mut conn, &head.epoch, 0, 100).await?;
        Ok(events
            .into_iter()
            .filter_map(|event| match event.change {
                Change::Domain(domain) => Some((domain.host.to_string(), domain.personal_data)),
                _ => None,
            })
            .collect())
    };
    let before = log().await?.len();
    keep(&made, PersonalData::None).await?;
    let none = Some(PersonalData::None);
    let expected = [("tn.gg".to_owned(), none), ("two.gg".to_owned(), none)];
    ensure!(log().await?[before..] == expected, "{:?}", log().await?);
    // No change, no news.
    keep(&made, PersonalData::None).await?;
    let rename = AccountChange { name: Some("New".to_owned()), ..AccountChange::default() };
    service::update_account(&made.app.core, &made.caller(), made.account.as_str(), rename).await?;
    ensure!(log().await?.len() == before + 2);
    let core = &made.app.core;
    let all = accounts::list_all_domains(&mut core.db.read().await?).await?;
    ensure!(all.iter().all(|domain| domain.personal_data == none), "as a welcome has them: {all:?}");
    // A command publishes it, too.
    let full = Some(PersonalData::Full);
    let change = AccountChange { personal_data: full, ..AccountChange::default() };
    control::service::seed::change_account(&core.db, &*core.clock, Some(made.account), change).await?;
    let expected = [("tn.gg".to_owned(), full), ("two.gg".to_owned(), full)];
    ensure!(log().await?[before + 2..] == expected, "{:?}", log().await?);
    Ok(())
}

const ALL: &str = "SELECT id || ' ' || personal_data FROM accounts ORDER BY id";

/// The migration, on a table with a row.
async fn accounts_that_were_there_keep_everything(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let steps = |migration: &str| {
        [
            "CREATE TABLE accounts (id TEXT)",
            "INSERT INTO accounts (id) VALUES ('old')",
            migration.trim_end().trim_end_matches(';'),
            "INSERT INTO accounts (id) VALUES ('young')",
        ]
        .join(";\n")
    };
    let found: Vec<String> = match &made.db.location {
        Location::Sqlite(_) => {
            let mut conn = sqlx::SqliteConnection::connect("sqlite::memory:").await?;
            let sql = steps(include_str!("../../../control/kernel/migrations/sqlite/0057_personal_data.sql"));
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await?;
            sqlx::query_scalar(ALL).fetch_all(&mut conn).await?
        }
        Location::Postgres(url) => {
            let mut conn = sqlx::PgConnection::connect(url).await?;
            let sql =
                steps(include_str!("../../../control/kernel/migrations/postgres/0057_personal_data.sql"));
            let own = format!("CREATE SCHEMA old; SET search_path TO old;\n{sql}");
            sqlx::raw_sql(AssertSqlSafe(own)).execute(&mut conn).await?;
            sqlx::query_scalar(ALL).fetch_all(&mut conn).await?
        }
    };
    ensure!(found == ["old full", "young truncated"], "{found:?}");
    execute(&made, "UPDATE accounts SET personal_data = 'odd'").await?;
    let mut conn = made.app.core.db.read().await?;
    ensure!(table::find_personal_data(&mut conn, made.account).await.is_err(), "of a newer release");
    Ok(())
}
