//! A brand's tour end to end, as `deploy/tour` walks it: a product of its own, addresses of a small city database.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tests::product::root;

use crate::decode::tools;

/// Items of the tour.
const ITEMS: usize = 50;

#[test]
fn a_brand_tells_the_genuine_from_the_copied() {
    tour().unwrap();
}

fn tour() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let codes = folder.path().join("codes");
    walk(&codes)?;
    printed(&codes)
}

/// The script as it stands: it makes its database and starts a product of its own.
fn walk(codes: &Path) -> Result<()> {
    let mut command = Command::new(root().join("deploy/tour"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
        command.env_remove(name);
    }
    let output =
        command.arg(codes).env("WAYMARK_BINARY", tests::product::binary()?).stdin(Stdio::null()).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    for expected in [
        "item 50 is commissioned; 50 codes are printed",
        "item 01: positive none none - Seen in CH, which is permitted.",
        "item 08: negative none confirmed - OUTSIDE_MARKET: seen in DE",
        "item 09: suspicious suspected none - DUPLICATE with",
        "item 09: https://example.com/bag, now https://example.com/warning; item 01: https://example.com/bag",
    ] {
        ensure!(told.contains(expected), "{expected:?} is not in\n{told}");
    }
    Ok(())
}

fn is_setting(name: &OsStr) -> bool {
    let settings = ["DATABASE_URL", "REDIS_URL", "RUST_LOG", "API", "EDGE", "KEY"];
    // The runner of the tests says some of its own package; with them cargo builds much anew.
    let starts = ["WAYMARK_", "CARGO_PKG_", "CARGO_MANIFEST_"];
    name.to_str()
        .is_some_and(|name| starts.iter().any(|start| name.starts_with(start)) || settings.contains(&name))
}

/// Every printed code reads, and each is that of its item.
fn printed(codes: &Path) -> Result<()> {
    let mut payloads = BTreeSet::new();
    for entry in fs::read_dir(codes)? {
        let path = entry?.path();
        let item = path.file_stem().and_then(|name| name.to_str()).context("a name")?;
        let found = tools::rqrr(&fs::read(&path)?, item);
        let [payload] = found.as_slice() else { anyhow::bail!("{item}: {found:?}") };
        ensure!(payload.ends_with(&format!("-{item}")), "{item}: {payload}");
        payloads.insert(payload.clone());
    }
    ensure!(payloads.len() == ITEMS, "{} codes", payloads.len());
    Ok(())
}
