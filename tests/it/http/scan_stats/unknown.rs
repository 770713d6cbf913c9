//! Requests for unknown ids: counted once, listed to the account of the domain, within bounds.

use anyhow::Result;
use axum::http::Method;
use serde_json::json;
use shared::{
    networks::network_of,
    wire::unknown::{MAX_COUNTS, UnknownCount, UnknownCounts, UnknownKey, UnknownReport},
};
use statistics::service::unknown_scans::{purge, record};
use tests::db::Engine;

use super::{super::operators::machine, *};

fn report(number: i64, counts: Vec<UnknownCount>) -> UnknownReport {
    UnknownReport { edge: "e1".into(), boot: 1, number, counts }
}

/// Counts of requests: domain, address, and how many.
fn counts(at: i64, requests: &[(&str, &str, usize)]) -> Vec<UnknownCount> {
    let mut counts = UnknownCounts::default();
    for (domain, ip, many) in requests {
        (0..*many).for_each(|_| counts.add(at, domain, network_of(ip.parse().unwrap())));
    }
    counts.take()
}

/// Domain, network and number of each row.
fn listed(answer: &Value) -> Vec<String> {
    rows(answer, &["domain", "network", "requests"])
}

async fn reports_are_counted_once_and_listed_to_their_account(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let core = &api.made.app.core;
    let first = report(
        1,
        counts(
            NOW,
            &[
                ("tn.gg", "192.0.2.1", 3),
                ("tn.gg", "192.0.2.99", 2),
                ("other.gg", "192.0.2.1", 9),
                ("no.gg", "192.0.2.1", 1),
            ],
        ),
    );
    record(core, &first).await?;
    record(core, &first).await?;
    record(core, &report(2, counts(NOW + HOUR, &[("tn.gg", "2001:db8:1::7", 4), ("tn.gg", "192.0.2.1", 1)])))
        .await?;
    // A copy that was delayed.
    record(core, &first).await?;
    // An edge begins anew: its numbers do, too.
    let again = UnknownReport { boot: 2, ..report(1, counts(NOW, &[("tn.gg", "198.51.100.1", 1)])) };
    record(core, &again).await?;
    api.made.clock.advance(2 * HOUR);
    let get = async |key: &str, query: &str| -> Result<Value> {
        let answer = api.call_as(key, Method::GET, &format!("/scans/unknown?{query}"), None).await?;
        ensure!(answer.status == 200, "{query}: {answer:?}");
        Ok(answer.json())
    };
    let all = get(&api.key, "").await?;
    let expected =
        [r#""tn.gg" "192.0.2.0/24" 6"#, r#""tn.gg" "2001:db8:1::/48" 4"#, r#""tn.gg" "198.51.100.0/24" 1"#];
    assert_eq!(listed(&all), expected, "{all}");
    assert_eq!((&all["requests"], &all["otherRows"]), (&json!(11), &json!(0)), "{all}");
    assert_eq!(
        (&all["rows"][0]["firstAt"], &all["rows"][0]["lastAt"]),
        (&json!(NOW), &json!(NOW + 2 * HOUR))
    );
    let top = get(&api.key, &format!("top=1&to={}", NOW + HOUR)).await?;
    assert_eq!(
        (listed(&top), &top["otherRows"]),
        (vec![r#""tn.gg" "192.0.2.0/24" 5"#.to_owned()], &json!(1))
    );
    assert_eq!(listed(&get(&api.other_key, "").await?), [r#""other.gg" "192.0.2.0/24" 9"#]);
    assert_eq!(listed(&get(&api.key, "domain=other.gg").await?), [""; 0]);
    // Networks are personal data.
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    let coarse = get(&viewer, "").await?;
    assert_eq!(rows(&coarse, &["domain", "requests"]), [r#""tn.gg" 11"#], "{coarse}");
    assert!(coarse["rows"][0].get("network").is_none(), "{coarse}");
    for (query, fault) in [
        ("top=0", "top must be"),
        ("domain=a%20b", "domain must be a host"),
        ("from=x", "from must be"),
        ("from=2025-01-01", "at most 31 days"),
    ] {
        let faults = api.get(&format!("/scans/unknown?{query}")).await?.problem(400, 40003);
        assert!(faults[0].contains(fault), "{query}: {faults:?}");
    }
    Ok(())
}

/// Somebody with many addresses must not fill the disk.
async fn an_hour_has_a_bounded_number_of_networks(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let core = &api.made.app.core;
    let of = |from: u32| -> Vec<UnknownCount> {
        let key = |n: u32| UnknownKey {
            hour: NOW / HOUR,
            domain: "tn.gg".into(),
            network: network_of(std::net::Ipv4Addr::from_bits((from + n) << 8).into()),
        };
        (0..MAX_COUNTS as u32).map(|n| UnknownCount { key: key(n), requests: 1 }).collect()
    };
    for number in 0..12_u32 {
        record(core, &report(i64::from(number) + 1, of(number * MAX_COUNTS as u32))).await?;
    }
    assert_eq!(super::backfill::count(&api, "unknown_scans").await?, 1_001);
    let answer = api.get("/scans/unknown?top=1").await?.json();
    assert_eq!(listed(&answer), [r#""tn.gg" null 11000"#], "{answer}");
    assert_eq!(answer["requests"], 12_000);
    let mut large = of(0);
    large.extend(of(50_000));
    assert!(record(core, &report(99, large)).await.is_err());
    // A report of an edge whose clock is wrong is of now.
    let strange = UnknownCount {
        key: UnknownKey {
            hour: i64::MAX,
            domain: "other.gg".into(),
            network: network_of([192, 0, 2, 1].into()),
        },
        requests: 1,
    };
    record(core, &report(100, vec![strange])).await?;
    let other = api.call_as(&api.other_key, Method::GET, "/scans/unknown", None).await?.json();
    assert_eq!(other["rows"][0]["firstAt"], NOW, "{other}");
    api.made.clock.advance(31 * 24 * HOUR);
    assert_eq!(purge(core).await?, 1_002);
    Ok(())
}

crate::on_both_engines!(
    reports_are_counted_once_and_listed_to_their_account,
    an_hour_has_a_bounded_number_of_networks,
);
