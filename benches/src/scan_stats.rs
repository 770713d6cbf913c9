//! Statistics of scans: questions to the roll-ups of a hundred million scans.

use std::{
    io::{Write, stdout},
    time::{Instant, SystemTime},
};

use ::tests::hist::Hist;
use anyhow::{Context, Result, ensure};

use crate::{
    control::{Control, ControlArgs},
    http::Client,
};

/// Links that are scanned on a day.
const LINKS: u32 = 2_000;

/// The goal for an answer by country and hour, in milliseconds.
const GOAL_MS: f64 = 100.0;

/// Measures questions to the statistics, on Postgres.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Days of which there are roll-ups
    #[arg(long, default_value_t = 365)]
    days: u32,
    /// Scans that the roll-ups stand for
    #[arg(long, default_value_t = 100_000_000)]
    scans: u64,
    /// Requests of each question
    #[arg(long, default_value_t = 200)]
    requests: usize,
    #[command(flatten)]
    control: ControlArgs,
}

/// Runs the benchmark and prints its rows.
///
/// # Errors
/// A server does not start, or an answer is wrong.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        (args.days, args.scans, args.requests) = (3, 100_000, 3);
    }
    ensure!(args.days >= 1 && args.requests >= 1, "sizes are out of range");
    let control = Control::start(&args.control)?;
    ask(&control, &args)?;
    Ok(true)
}

/// Writes roll-ups by SQL, as the intake would have left them, and asks.
fn ask(control: &Control, args: &Args) -> Result<()> {
    let account = control.schema().sql("SELECT id FROM accounts")?.trim().to_owned();
    let now = i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs())?;
    let (end, days) = (now / 3_600, i64::from(args.days));
    let each = args.scans / u64::from(args.days * 24);
    // A few countries have most scans.
    let rows = format!(
        "INSERT INTO scan_statistics (account_id, project_id, dimension, hour, value, second, scans, new_devices, robots) \
         SELECT '{account}', '', d, h, v, s, GREATEST(1, ({each} * w)::bigint), ({each} * w / 2)::bigint, 1 FROM \
         generate_series({begin}, {end} - 1) h, LATERAL ( \
         SELECT 1 d, '' v, '' s, 1.0 w \
         UNION ALL SELECT 2, 'C' || n, '', 1.0 / (n * 4.7) FROM generate_series(1, 60) n \
         UNION ALL SELECT 3, 'C' || n % 60, 'R' || n, 0.005 FROM generate_series(1, 200) n \
         UNION ALL SELECT 4, 'C' || n % 60, 'T' || n, 0.0033 FROM generate_series(1, 300) n \
         UNION ALL SELECT 5, 'S' || n, '', 0.125 FROM generate_series(1, 8) n \
         UNION ALL SELECT 6, 'D' || n, '', 0.333 FROM generate_series(1, 3) n \
         UNION ALL SELECT 7, 'l' || n, '', 0.05 FROM generate_series(1, 20) n \
         UNION ALL SELECT 20, 'P' || n, '', 0.02 FROM generate_series(1, 50) n \
         UNION ALL SELECT 21, 'P' || n % 50, 'C' || n % 60, 0.003 FROM generate_series(1, 300) n) t ORDER BY h",
        begin = end - days * 24,
    );
    let sums = "INSERT INTO scan_statistics_days (account_id, project_id, dimension, day, value, second, scans, \
        new_devices, robots) SELECT account_id, project_id, dimension, hour / 24, value, second, SUM(scans), \
        SUM(new_devices), SUM(robots) FROM scan_statistics GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 4";
    // As many links as items: most are scanned once or twice, a few of them each day.
    let links = format!(
        "INSERT INTO scan_statistics_days (account_id, project_id, dimension, day, value, second, scans, new_devices, robots) \
         SELECT '{account}', '', 24, d, 'tn.gg/L' || (CASE WHEN n < 50 THEN n ELSE d * {LINKS} + n END), '', 1 + n % 2, 1, 0 \
         FROM generate_series({begin}, {end}) d, generate_series(1, {LINKS}) n ORDER BY d",
        begin = (end - days * 24) / 24,
        end = (end - 1) / 24,
    );
    let begun = Instant::now();
    for text in [rows.as_str(), sums, &links] {
        control.schema().sql(text)?;
    }
    control.schema().sql("VACUUM ANALYZE scan_statistics")?;
    control.schema().sql("VACUUM ANALYZE scan_statistics_days")?;
    let told = control.schema().sql(
        "SELECT COUNT(*), SUM(scans) FILTER (WHERE dimension = 1), pg_total_relation_size('scan_statistics') / 1048576, \
         (SELECT COUNT(*) FROM scan_statistics_days), pg_total_relation_size('scan_statistics_days') / 1048576 \
         FROM scan_statistics",
    )?;
    let mut out = stdout().lock();
    writeln!(
        out,
        "roll-ups of {days} days written by SQL in {:.0} s: rows by the hour | scans | MiB | rows by the day | MiB = {}",
        begun.elapsed().as_secs_f64(),
        told.trim()
    )?;
    writeln!(out, "| question | rows | p50 ms | p99 ms |\n|---|---:|---:|---:|")?;
    let mut client = Client::connect(control.api, Some(&control.key))?;
    let span = |days: i64| {
        let days = days.min(i64::from(args.days));
        format!("from={}&to={}", (end - days * 24) * 3_600_000, end * 3_600_000)
    };
    for (name, query) in [
        ("a week by country and hour", format!("{}&interval=hour&groupBy=country", span(7))),
        ("31 days by country and hour", format!("{}&interval=hour&groupBy=country", span(31))),
        (
            "a year by country and day",
            format!("{}&interval=day&groupBy=country&timeZone=Europe/Berlin", span(365)),
        ),
        ("a year by product, one country", format!("{}&groupBy=product&filter=country=C1", span(365))),
        (
            "a year by product and country, two countries",
            format!("{}&groupBy=country,product&filter=country=C1|C2", span(365)),
        ),
        ("a year in all by month", format!("{}&interval=month", span(365))),
        ("31 days by link", format!("{}&groupBy=link", span(30))),
        ("a year of a link by day", format!("{}&interval=day&filter=link=tn.gg/L7", span(365))),
    ] {
        let mut times = Hist::default();
        let mut shown = 0;
        for _ in 0..args.requests {
            let begun = Instant::now();
            let answer = client.ask("GET", &format!("/scans/stats?{query}"), None)?;
            times.add(begun.elapsed());
            ensure!(answer.status == 200, "{query}: {} {:?}", answer.status, answer.json());
            let body = answer.json()?;
            shown = body["rows"].as_array().context("rows")?.len();
            let rows: i64 =
                body["rows"].as_array().into_iter().flatten().filter_map(|row| row["scans"].as_i64()).sum();
            let all = rows + body["other"]["scans"].as_i64().unwrap_or_default();
            ensure!(
                shown > 0 && Some(all) == body["totals"]["scans"].as_i64(),
                "{query}: {all} are not the totals"
            );
        }
        let p99 = times.quantile_us(0.99) / 1e3;
        writeln!(out, "| {name} | {shown} | {:.1} | {p99:.1} |", times.quantile_us(0.5) / 1e3)?;
    }
    writeln!(out, "The goal for country and hour is a p99 of {GOAL_MS} ms.")?;
    Ok(())
}
