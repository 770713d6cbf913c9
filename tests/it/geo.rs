//! City databases: both layouts, both address families, and files that are replaced.

use std::{
    fs,
    net::IpAddr,
    path::Path,
    time::{Duration, Instant},
};

use edge::GeoDatabase;
use serde_json::{Value, json};
use shared::geo::{CityDatabase, GeoIp, Locality};
use tests::{mmdb::database, product::DEADLINE};
use tokio_util::sync::CancellationToken;

fn nested(city: &str) -> Value {
    json!({
        "city": {"geoname_id": 1, "names": {"de": "X", "en": city}},
        "country": {"iso_code": "GB", "names": {"en": "United Kingdom"}},
        "location": {"latitude": 51.5, "longitude": -0.125, "time_zone": "Europe/London"},
        "subdivisions": [{"iso_code": "ENG", "names": {"en": "England"}}],
    })
}

fn flat(city: &str) -> Value {
    json!({
        "city": city, "country_code": "GB", "latitude": 51.5, "longitude": -0.125, "postcode": "",
        "state1": "England", "timezone": "Europe/London",
    })
}

fn london(city: &str) -> Locality {
    Locality {
        city: Some(city.to_owned()),
        region: Some("England".to_owned()),
        country_code: Some("GB".to_owned()),
        time_zone: Some("Europe/London".to_owned()),
        as_number: None,
        position: Some((51.5, -0.125)),
    }
}

#[test]
fn both_layouts_resolve_ipv4_and_ipv6() {
    for (layout, record) in [("nested", nested as fn(&str) -> Value), ("flat", flat)] {
        let v4 = database(4, &[("203.0.113.0/24", record("Four"))]);
        let both = database(6, &[("203.0.113.0/24", record("Four")), ("2001:db8::/32", record("Six"))]);
        let [v4, both] = [v4, both].map(|bytes| CityDatabase::parse(bytes).unwrap());
        for (name, database, ip, expected) in [
            ("v4", &v4, "203.0.113.7", Some("Four")),
            ("v4", &v4, "::ffff:203.0.113.7", Some("Four")),
            ("v4", &v4, "203.0.114.7", None),
            ("v4", &v4, "2001:db8::1", None),
            ("both", &both, "203.0.113.255", Some("Four")),
            ("both", &both, "::ffff:203.0.113.7", Some("Four")),
            ("both", &both, "2001:db8:ffff::1", Some("Six")),
            ("both", &both, "2001:db9::1", None),
            ("both", &both, "127.0.0.1", None),
            ("both", &both, "::1", None),
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            let expected = expected.map(london).unwrap_or_default();
            assert_eq!(database.find(ip), expected, "{layout}, database of {name}, {ip}");
        }
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let whole = database(6, &[("203.0.113.0/24", nested("Four"))]);
    assert!(CityDatabase::parse(whole.clone()).is_ok());
    for length in 0..whole.len() {
        assert!(CityDatabase::parse(whole[..length].to_vec()).is_err(), "{length} of {} bytes", whole.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_file_is_loaded_and_a_broken_one_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("city.mmdb");
    let put = |bytes: &[u8]| replace(&path, bytes);
    put(b"no database");
    assert!(GeoDatabase::open(&path).is_err());
    put(&database(4, &[("0.0.0.0/1", nested("First"))]));
    let geo = GeoDatabase::open(&path).unwrap();
    let stop = CancellationToken::new();
    let follower = tokio::spawn(geo.clone().follow(stop.clone()));
    let city = || geo.find([10, 0, 0, 1].into()).city.unwrap_or_default();
    assert_eq!(city(), "First");
    for (bytes, expected) in [
        (database(4, &[("0.0.0.0/1", flat("Second"))]), "Second"),
        (b"broken".to_vec(), "Second"),
        (database(6, &[("0.0.0.0/1", nested("Third"))]), "Third"),
        (Vec::new(), "Third"),
        (database(6, &[("0.0.0.0/1", nested("Fourth"))]), "Fourth"),
    ] {
        put(&bytes);
        if bytes.len() < 100 {
            assert!(geo.reload().is_err());
        }
        let begun = Instant::now();
        while city() != expected {
            assert!(begun.elapsed() < DEADLINE, "{expected} does not come");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    fs::remove_file(&path).unwrap();
    assert!(geo.reload().is_err());
    stop.cancel();
    follower.await.unwrap();
    assert_eq!(city(), "Fourth");
}

/// As operators replace files: a new one beside it, then a rename.
fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(&new, path).unwrap();
}
