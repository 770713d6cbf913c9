//! Series for plots: aggregated buckets of a history.

use anyhow::Result;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Api,
    properties::{MAX_TIME, bases},
};

async fn series_are_aggregated_in_buckets(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for base in bases(&api).await? {
        let url = format!("{base}/Temp/series");
        assert_eq!(api.get(&url).await?.json(), json!({"buckets": []}));
        let points: Vec<Value> = (0..100).map(|n| json!({"value": n, "timestamp": n * 10})).collect();
        api.must_put(&format!("{base}/temp"), json!(points)).await?;
        // What is no number does not count, wherever it is.
        let others = json!([
            {"value": "7", "timestamp": -50}, {"value": true, "timestamp": 5}, {"value": [1], "timestamp": 15},
            {"value": {"a": 1}, "timestamp": 25}, {"value": "-x", "timestamp": 2_000},
        ]);
        api.must_put(&format!("{base}/temp"), others).await?;
        let series = api.get(&format!("{url}?points=2")).await?.json();
        assert_eq!((&series["from"], &series["to"], &series["width"]), (&json!(0), &json!(990), &json!(496)));
        assert_eq!(
            series["buckets"],
            json!([
                {"timestamp": 0, "min": 0.0, "max": 49.0, "mean": 24.5, "count": 50},
                {"timestamp": 496, "min": 50.0, "max": 99.0, "mean": 74.5, "count": 50},
            ])
        );
        // A part of it; buckets without numbers are left out.
        let series = api.get(&format!("{url}?from=-100&to=19&points=12")).await?.json();
        assert_eq!(
            series["buckets"],
            json!([
                {"timestamp": 0, "min": 0.0, "max": 0.0, "mean": 0.0, "count": 1},
                {"timestamp": 10, "min": 1.0, "max": 1.0, "mean": 1.0, "count": 1},
            ])
        );
        let count = |series: &Value| {
            let buckets = series["buckets"].as_array().map_or(0, Vec::len);
            let points =
                series["buckets"].as_array().into_iter().flatten().filter_map(|b| b["count"].as_u64());
            (buckets, points.sum::<u64>())
        };
        assert_eq!(count(&api.get(&url).await?.json()), (100, 100));
        let whole = format!("{url}?from=-{MAX_TIME}&to={MAX_TIME}&points=1");
        assert_eq!(count(&api.get(&whole).await?.json()), (1, 100));
        assert_eq!(api.get(&format!("{url}?from=5&to=4")).await?.json(), json!({"buckets": []}));
        // Numbers of every form.
        let numbers = json!([{"value": -1.5e-7, "timestamp": 0}, {"value": 9_007_199_254_740_993_i64, "timestamp": 1},
            {"value": 1e300, "timestamp": 2}]);
        api.must_put(&format!("{base}/n"), numbers).await?;
        let buckets = api.get(&format!("{base}/n/series")).await?.json()["buckets"].clone();
        let mins: Vec<f64> =
            buckets.as_array().into_iter().flatten().filter_map(|b| b["min"].as_f64()).collect();
        assert_eq!(mins, [-1.5e-7, 9_007_199_254_740_993_i64 as f64, 1e300]);
        for wrong in ["points=0", "points=2001", "points=x", "from=x", "to=1.5"] {
            let faults = api.get(&format!("{url}?{wrong}")).await?.problem(400, 40003);
            assert!(faults[0].starts_with(&wrong[..wrong.find('=').unwrap_or(0)]), "{faults:?}");
        }
    }
    Ok(())
}

crate::on_both_engines!(series_are_aggregated_in_buckets);
