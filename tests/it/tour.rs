//! A brand's tour end to end, as `deploy/tour` walks it: a real product, addresses of a small city database.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::{
    mmdb,
    product::{DEADLINE, binary, random_key, root, spawn_up},
};

use crate::decode::tools;

/// Items of the tour.
const ITEMS: usize = 50;

/// A product; killed when dropped, whether or not the tour was whole.
struct Up(Child);

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Networks for documentation (RFC 5737) as cities of the world.
fn cities() -> Vec<u8> {
    let city = |name: &str, country: &str, latitude: f64, longitude: f64| -> Value {
        json!({"city": name, "state1": name, "country_code": country, "timezone": "Etc/UTC",
            "latitude": latitude, "longitude": longitude})
    };
    mmdb::database(
        6,
        &[
            ("192.0.2.0/24", city("Bern", "CH", 46.95, 7.45)),
            ("198.51.100.0/26", city("Tokyo", "JP", 35.68, 139.69)),
            ("198.51.100.64/26", city("Sydney", "AU", -33.87, 151.21)),
            ("198.51.100.128/26", city("Lima", "PE", -12.05, -77.04)),
            ("198.51.100.192/26", city("Lagos", "NG", 6.52, 3.38)),
            ("203.0.113.0/24", city("Berlin", "DE", 52.52, 13.4)),
        ],
    )
}

#[test]
fn a_brand_tells_the_genuine_from_the_copied() {
    tour().unwrap();
}

fn tour() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("city.mmdb");
    fs::write(&database, cities())?;
    let key = random_key()?;
    let mut command = Command::new(binary()?);
    command
        .arg("up")
        .env("WAYMARK_DATA_DIR", folder.path().join("data"))
        .env("WAYMARK_OPERATOR_KEY", &key)
        .env("WAYMARK_API_LISTEN", "127.0.0.1:0")
        .env("WAYMARK_EDGE_LISTEN", "127.0.0.1:0")
        .env("WAYMARK_MQTT_LISTEN", "127.0.0.1:0")
        .env("WAYMARK_ADMIN_LISTEN", "127.0.0.1:0")
        .env("WAYMARK_GEOIP_DB", &database)
        .env("WAYMARK_TRUSTED_PROXIES", "127.0.0.1")
        .env("RUST_LOG", "warn");
    let (child, said) = spawn_up(&mut command, DEADLINE)?;
    let _up = Up(child);
    walk(&said, &key, folder.path())?;
    printed(&folder.path().join("codes"))
}

fn walk(said: &[String], key: &str, folder: &Path) -> Result<()> {
    let line = |label: &str| {
        let found = said.iter().find_map(|line| line.strip_prefix(label)?.strip_prefix(' '));
        found.map(str::trim).with_context(|| format!("no line {label:?} in {said:?}"))
    };
    let output = Command::new(root().join("deploy/tour"))
        .arg(folder.join("codes"))
        .env("API", line("API")?)
        .env("EDGE", line("Edge")?)
        .env("KEY", key)
        .stdin(Stdio::null())
        .output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    for expected in [
        "item 50 is commissioned; 50 codes are printed",
        "item 01: positive none none - Seen in CH, which is permitted.",
        "item 08: negative unknown confirmed - OUTSIDE_MARKET: seen in DE",
        "item 09: suspicious suspected none - DUPLICATE with",
        "item 09: https://example.com/bag, now https://example.com/warning; item 01: https://example.com/bag",
    ] {
        ensure!(told.contains(expected), "{expected:?} is not in\n{told}");
    }
    Ok(())
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
