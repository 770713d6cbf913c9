//! The guide to sizing: what it computes follows from the figures that it names.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use tests::product::root;

/// Scans of a year, as the columns of the table.
const YEARS: [f64; 3] = [1e7, 1e9, 1e11];

/// Seconds of 365 days.
const YEAR_SECONDS: f64 = 31_536_000.0;

/// How many times the average a peak is.
const PEAK: f64 = 10.0;

/// The cells of the rows of every table, without their bars.
fn rows(guide: &str) -> Vec<Vec<&str>> {
    let lines = guide.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    lines.map(|line| line.split(" | ").collect()).collect()
}

/// The figures by their names.
fn figures<'a>(rows: &[Vec<&'a str>]) -> Result<BTreeMap<&'a str, f64>> {
    let mut found = BTreeMap::new();
    for row in rows {
        let [name, _, figure, from] = row.as_slice() else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else { continue };
        let figure = figure.replace(',', "").parse().with_context(|| format!("{name}: {figure}"))?;
        ensure!(from.starts_with("measured: ") || from.starts_with("computed"), "{name}: {from}");
        found.insert(name, figure);
    }
    Ok(found)
}

fn bytes(count: f64) -> String {
    if count < 1e12 { format!("{:.1} GB", count / 1e9) } else { format!("{:.1} TB", count / 1e12) }
}

fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    // Thousands have a comma.
    match text.split_once('.') {
        Some((whole, rest)) if whole.len() > 3 => {
            let (thousands, last) = whole.split_at(whole.len() - 3);
            format!("{thousands},{last}.{rest}")
        }
        Some(_) | None => text,
    }
}

/// A quantity of a year with so many scans.
type Quantity = fn(&dyn Fn(&str) -> f64, f64) -> String;

/// The beginning of a row of the table, and how its cells are computed.
const QUANTITIES: [(&str, Quantity); 9] = [
    ("scans a second on average", |_, n| number(n / YEAR_SECONDS)),
    ("scans a second at a peak", |_, n| number(PEAK * n / YEAR_SECONDS)),
    ("scans kept for 400 days", |figure, n| bytes(n * 400.0 / 365.0 * figure("scan"))),
    ("scans kept for 30 days", |figure, n| bytes(n * 30.0 / 365.0 * figure("scan"))),
    ("statistics by the hour", |figure, _| bytes(figure("rows") * 400.0 / 365.0 * figure("row"))),
    ("statistics by link", |figure, n| bytes(n * 400.0 / 365.0 * figure("row"))),
    ("disk of edges", |figure, n| bytes(3_600.0 * PEAK * n / YEAR_SECONDS * figure("spooled"))),
    ("edges:", |figure, n| format!("{}", (PEAK * n / YEAR_SECONDS / figure("edge")).ceil() + 1.0)),
    ("times the two cores", |figure, n| number(PEAK * n / YEAR_SECONDS / figure("intake"))),
];

#[test]
fn what_the_guide_computes_follows_from_its_figures() -> Result<()> {
    let guide = std::fs::read_to_string(root().join("deploy/guide/sizing.md"))?;
    let rows = rows(&guide);
    let figures = figures(&rows)?;
    ensure!(figures.len() == 6, "{figures:?}");
    let figure = |name: &str| figures.get(name).copied().unwrap_or(f64::NAN);
    for (name, quantity) in QUANTITIES {
        let row =
            rows.iter().find(|row| row[0].starts_with(name)).with_context(|| format!("no row {name:?}"))?;
        let expected = YEARS.map(|scans| quantity(&figure, scans));
        ensure!(row[1..] == expected, "| {} | {} |", row[0], expected.join(" | "));
    }
    Ok(())
}
