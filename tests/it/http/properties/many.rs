//! Many writes of properties: in one request, and at once.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::db::Engine;

use super::{super::Api, bases, brief};
use crate::on_both_engines;

/// Large batches are written in another way where nothing is in their time yet.
pub(super) async fn batches_overwrite_existing_values(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let path = format!("{}/a", bases(&api).await?[0]);
    let batch = |times: std::ops::Range<i64>, step: usize, value: i64| {
        let points = times.step_by(step).map(|at| json!({"value": value, "timestamp": at}));
        json!(points.collect::<Vec<_>>())
    };
    let mut expected = std::collections::BTreeMap::new();
    let steps =
        [(0..200, 1), (100..300, 1), (-300..-100, 1), (299..450, 1), (1_000..1_400, 2), (1_001..1_401, 2)];
    for (value, (times, step)) in (0_i64..).zip(steps) {
        api.must_put(&path, batch(times.clone(), step, value)).await?;
        expected.extend(times.step_by(step).map(|at| (at, value)));
    }
    let stored = api.points(&format!("{path}?perPage=100")).await?;
    let wanted: Vec<Value> = expected.iter().rev().map(|(at, value)| json!(["a", value, at])).collect();
    assert_eq!(stored, wanted);
    // Whoever comes second writes over the whole of the first.
    let at_once = (0..6).map(|value| api.must_put(&path, batch(2_000..2_300, 1, value)));
    for result in futures_util::future::join_all(at_once).await {
        result?;
    }
    let stored = api.points(&format!("{path}?perPage=100&from=2000")).await?;
    assert_eq!(stored.len(), 300);
    assert!(stored.iter().all(|point| point[1] == stored[0][1]), "{stored:?}");
    Ok(())
}

/// Many small writes at once, of which some are refused: each of the others is in the history, and none twice.
pub(super) async fn concurrent_writes_do_not_mix(engine: Engine) -> Result<()> {
    const OWNERS: usize = 4;
    let api = Api::new(engine).await?;
    let (other_product, other_thng) = api.others().await?;
    let mut all = Vec::new();
    for _ in 0..OWNERS / 2 {
        all.extend(bases(&api).await?);
    }
    let foreign = [
        format!("/thngs/{other_thng}/properties"),
        format!("/products/{other_product}/properties"),
        "/thngs/UKXAGyEf8SQ5eTDmVgGpHqAa/properties".to_owned(),
    ];
    let write = |n: usize| {
        let (api, base) = (&api, &all[n % OWNERS]);
        let foreign = &foreign[n % foreign.len()];
        async move {
            // Every fifth goes to somebody else's, or to nobody's.
            let base = if n % 5 == 4 { foreign } else { base };
            let body =
                json!([{"key": "a", "value": n, "timestamp": n}, {"key": format!("k{n}"), "value": n}]);
            let answer = api.put(base, body).await?;
            assert_eq!(answer.status == 200, n % 5 != 4, "{n}: {answer:?}");
            if n % 5 == 4 {
                assert_eq!(answer.json()["code"], 40401, "{n}: {answer:?}");
            } else {
                assert_eq!(brief(&answer.json())[0], json!(["a", n, n]));
            }
            Ok::<_, anyhow::Error>(())
        }
    };
    for result in futures_util::future::join_all((0..60).map(write)).await {
        result?;
    }
    for (owner, base) in all.iter().enumerate() {
        let mine: Vec<usize> = (0..60).filter(|n| n % 5 != 4 && n % OWNERS == owner).collect();
        let expected: Vec<Value> = mine.iter().rev().map(|n| json!(["a", n, n])).collect();
        assert_eq!(api.points(&format!("{base}/a?perPage=100")).await?, expected);
        let latest = api.points(&format!("{base}?perPage=100")).await?;
        assert_eq!(latest.len(), mine.len() + 1, "{latest:?}");
        assert!(latest.contains(expected.first().context("none")?), "{latest:?}");
    }
    assert_eq!(api.rows("property_points").await?, 48 * 2);
    Ok(())
}

on_both_engines!(batches_overwrite_existing_values, concurrent_writes_do_not_mix);
