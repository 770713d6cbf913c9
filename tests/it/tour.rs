//! The demo tour end to end, as `deploy/tour` runs it: a product of its own, and addresses of a small city database.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tests::{product::root, repetitions};

use crate::decode::tools;

/// Items of the tour: in the gate, and as it is by itself.
const ITEMS: [usize; 2] = [13, 50];

#[test]
fn a_brand_distinguishes_genuine_from_copied_items() {
    tour().unwrap();
}

fn tour() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let codes = folder.path().join("codes");
    let items = repetitions(ITEMS[0], ITEMS[1]);
    walk(&codes, items)?;
    printed(&codes, items)
}

/// The script as it stands: it makes its database and starts a product of its own.
fn walk(codes: &Path, items: usize) -> Result<()> {
    let mut command = Command::new(root().join("deploy/tour"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
        command.env_remove(name);
    }
    command.arg(codes).env("ITEMS", items.to_string()).env("WAYMARK_BINARY", tests::product::binary()?);
    let output = command.stdin(Stdio::null()).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    for expected in [
        &*format!("item {items} is commissioned; {items} codes are printed"),
        "item 01: positive none none - Seen in CH, which is permitted.",
        "item 08: negative none confirmed - OUTSIDE_MARKET: seen in DE",
        "item 09: suspicious suspected none - DUPLICATE with",
        "the forger makes Japan a market of item 13: refused with 403",
        "item 09: https://example.com/bag, now https://example.com/warning; item 01: https://example.com/bag",
    ] {
        ensure!(told.contains(expected), "{expected:?} is not in\n{told}");
    }
    for (name, words) in VERDICTS {
        // The verdict of an item ends where the next part of the tour begins, or its next verdict.
        let (_, after) = told.split_once(name).with_context(|| format!("{name:?} is not in\n{told}"))?;
        let lines = after.lines().skip(1).take_while(|line| line.starts_with("    "));
        let said: Vec<&str> = lines.map(str::trim).collect();
        let found = words.iter().zip(&said).take_while(|(word, line)| is_said(word, line)).count();
        ensure!(found == words.len() && said.len() == words.len(), "{name}: {words:#?}\nis not\n{said:#?}");
    }
    Ok(())
}

/// Whether a line has each of some parts that are divided by `...`, in their order.
fn is_said(words: &str, line: &str) -> bool {
    let mut rest = Some(line);
    for part in words.split("...") {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, after)| after);
    }
    rest.is_some()
}

/// What is said of a copy that is also diverted, a tourist, a display piece and a forger: the statuses, then the reason,
/// the certainty and what settles it of each check.
const VERDICTS: [(&str, &[&str]); 6] = [
    (
        "item 10: negative suspected confirmed",
        &[
            "DUPLICATE with 21 points, the bar is 10: 6 for 4 countries, 3 for 4 independent places...4 for 13 pairs of device \
             and region",
            "certainty: 21 points, the bar is 10",
            "settles: INSPECT DECIDE_CASE",
            "OUTSIDE_MARKET: seen in JP, permitted are CH; 0 sessions inside before, 12 outside.",
            "certainty: 0 sessions inside of the market, 12 outside",
            "settles: ASK_FOR_PLACE DECIDE_CASE",
        ],
    ),
    (
        "item 11: suspicious none suspected",
        &[
            "OUTSIDE_MARKET: seen in JP, permitted are CH; 1 sessions inside before, 0 outside. HOME_IN_MARKET: it was at \
             home in its market",
            "certainty: 1 sessions inside of the market, 0 outside",
            "settles: ASK_FOR_PLACE DECIDE_CASE",
            "TOO_FEW_SCANS: 1 sessions before, 3 are needed.",
            "certainty: ... points, the bar is 8",
            "settles: nothing to do",
        ],
    ),
    (
        "item 12: suspicious suspected none",
        &[
            "It may be a DUPLICATE: ... MOSTLY_IN_ONE_REGION: 25 of 28 sessions are in CH-Bern... LOOKS_LIKE_DISPLAY: 28 \
             devices, mostly at one place; if it is on display, add the tag display.",
            "certainty: ... points, the bar is 10",
            "settles: TAG_DISPLAY ALLOW_PLACE INSPECT DECIDE_CASE",
        ],
    ),
    (
        "item 12, tagged as a display piece: positive none none",
        &["TOO_FEW_SCANS: 0 sessions before", "certainty: 0 points, the bar is 8", "settles: nothing to do"],
    ),
    (
        "item 13: positive none none",
        &[
            "No duplicate: ... UNVERIFIED_SCANS: 12 scans by public keys are left out.",
            "certainty: ... points, the bar is 8",
            "settles: nothing to do",
            "12 scans by public keys are left out",
        ],
    ),
    (
        "item 13, as the forger claims to see it in Tokyo: unknown none unknown",
        &[
            "NO_COUNTRY: the country is not known.",
            "certainty: 4 sessions inside of the market, 0 outside",
            "settles: ASK_FOR_PLACE",
        ],
    ),
];

fn is_setting(name: &OsStr) -> bool {
    let settings = ["DATABASE_URL", "REDIS_URL", "RUST_LOG", "API", "EDGE", "KEY", "ITEMS"];
    // The runner of the tests says some of its own package; with them cargo builds much anew.
    let starts = ["WAYMARK_", "CARGO_PKG_", "CARGO_MANIFEST_"];
    name.to_str()
        .is_some_and(|name| starts.iter().any(|start| name.starts_with(start)) || settings.contains(&name))
}

/// Every printed code reads, and each is that of its item.
fn printed(codes: &Path, items: usize) -> Result<()> {
    let mut payloads = BTreeSet::new();
    for entry in fs::read_dir(codes)? {
        let path = entry?.path();
        let item = path.file_stem().and_then(|name| name.to_str()).context("a name")?;
        let found = tools::rqrr(&fs::read(&path)?, item);
        let [payload] = found.as_slice() else { anyhow::bail!("{item}: {found:?}") };
        ensure!(payload.ends_with(&format!("-{item}")), "{item}: {payload}");
        payloads.insert(payload.clone());
    }
    ensure!(payloads.len() == items, "{} codes", payloads.len());
    Ok(())
}
