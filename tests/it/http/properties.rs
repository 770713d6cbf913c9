//! Properties: writes, history and pages, deletion, and the properties in documents.

mod many;

use anyhow::{Context, Result, ensure};
use catalog::store::properties;
use kernel::{
    domain::property::{Point, PropertyKey},
    store::Ctx,
};
use serde_json::{Value, json};
use shared::time::UnixMillis;
use tests::db::Engine;

use super::{Api, paging::next};

pub(super) const MAX_TIME: i64 = 8_640_000_000_000_000;

impl Api {
    pub(super) async fn must_put(&self, uri: &str, body: Value) -> Result<Value> {
        let answer = self.put(uri, body).await?;
        ensure!(answer.status == 200, "PUT {uri}: {answer:?}");
        Ok(answer.json())
    }

    pub(super) async fn remove(&self, uri: &str) -> Result<()> {
        let answer = self.delete(uri).await?;
        ensure!(answer.status == 200 && answer.bytes.is_empty(), "DELETE {uri}: {answer:?}");
        Ok(())
    }

    /// Key, value and timestamp of what a list gives, page by page.
    async fn points(&self, uri: &str) -> Result<Vec<Value>> {
        let (mut all, mut url) = (Vec::new(), uri.to_owned());
        loop {
            let answer = self.get(&url).await?;
            ensure!(answer.status == 200, "GET {url}: {answer:?}");
            all.extend(brief(&answer.json()));
            let Some(next) = next(&answer) else { return Ok(all) };
            url = next;
        }
    }

    /// How many rows a table holds.
    async fn rows(&self, table: &str) -> Result<usize> {
        Ok(self.fingerprint().await?.get(table).context("no table")?.len())
    }
}

fn brief(list: &Value) -> Vec<Value> {
    let all = list.as_array().unwrap();
    all.iter().map(|one| json!([one["key"], one["value"], one["timestamp"]])).collect()
}

/// A Thng and a product of the first account, with the paths of their properties.
pub(super) async fn bases(api: &Api) -> Result<Vec<String>> {
    let mut bases = Vec::new();
    for kind in ["thngs", "products"] {
        let body = json!({"name": "x", "identifiers": {"gs1:21": "A/B"}});
        let made = api.create(&format!("/{kind}"), body).await?;
        bases.push(format!("/{kind}/{}/properties", made["id"].as_str().context("id")?));
    }
    Ok(bases)
}

pub(super) async fn written_values_are_returned(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for base in bases(&api).await? {
        let before = api.made.app.core.clock.now().0;
        let body = json!([{"key": "Temp", "value": 42}]);
        let written = api.post(&base, body).await?.must_be(200)?.json();
        assert_eq!(written.as_array().map(Vec::len), Some(1), "{written}");
        let members: Vec<&String> = written[0].as_object().context("object")?.keys().collect();
        assert_eq!(members, ["createdAt", "key", "timestamp", "value"]);
        assert_eq!((&written[0]["key"], &written[0]["value"]), (&json!("temp"), &json!(42)));
        assert_eq!(written[0]["timestamp"], written[0]["createdAt"]);
        assert!(written[0]["timestamp"].as_i64() > Some(before));
        assert_eq!(api.get(&base).await?.json(), written);
        for reference in [
            base.clone(),
            base.split('/').take(2).collect::<Vec<_>>().join("/") + "/gs1%3A21%3AA%2FB/properties",
        ] {
            for key in ["temp", "TEMP", "Temp"] {
                assert_eq!(
                    api.get(&format!("/v2{reference}/{key}")).await?.json(),
                    written,
                    "{reference}/{key}"
                );
            }
        }

        // Every type of value, and every form of the single PUT.
        let one = format!("{base}/%C3%84%2F1");
        for value in [
            json!("text"),
            json!(1.5),
            json!(9_007_199_254_740_993_i64),
            json!(true),
            json!({"a": [null]}),
            json!({}),
            json!("42"),
            json!("\u{1F45F} \" \\"),
        ] {
            let written = api.must_put(&one, value.clone()).await?;
            assert_eq!((&written[0]["key"], &written[0]["value"]), (&json!("ä/1"), &value));
            assert_eq!(brief(&api.get(&one).await?.json())[0], brief(&written)[0], "{value}");
        }
        for (body, expected) in [
            (json!({"value": [1, 2]}), json!([["many", [1, 2], 0]])),
            (
                json!([{"value": "b", "timestamp": -1}, {"value": {"value": 1}, "timestamp": 2}]),
                json!([["many", "b", -1], ["many", {"value": 1}, 2]]),
            ),
            (json!({"value": 3, "timestamp": MAX_TIME}), json!([["many", 3, MAX_TIME]])),
            (json!({"value": 4, "timestamp": -MAX_TIME, "key": "MANY"}), json!([["many", 4, -MAX_TIME]])),
            (json!([]), json!([])),
        ] {
            let mut written = brief(&api.must_put(&format!("{base}/Many"), body.clone()).await?);
            if body["value"] == json!([1, 2]) {
                written[0][2] = json!(0);
            }
            assert_eq!(json!(written), expected, "{body}");
        }
        // Times before 1970 and in the future are in the history in their order.
        let times: Vec<i64> = api
            .points(&format!("{base}/many?perPage=2"))
            .await?
            .iter()
            .filter_map(|p| p[2].as_i64())
            .collect();
        assert_eq!((times.len(), times[0], times[2..].to_vec()), (5, MAX_TIME, vec![2, -1, -MAX_TIME]));
        assert_eq!(api.get(&format!("{base}/none")).await?.json(), json!([]));
    }
    Ok(())
}

pub(super) async fn the_latest_value_has_the_greatest_timestamp(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for base in bases(&api).await? {
        let written = api
            .must_put(
                &base,
                json!([
                    {"key": "a", "value": 1, "timestamp": 50},
                    {"key": "B", "value": 2, "timestamp": 10},
                    {"key": "A", "value": 3, "timestamp": 20},
                    {"key": "b", "value": 4, "timestamp": 10},
                ]),
            )
            .await?;
        assert_eq!(json!(brief(&written)), json!([["a", 1, 50], ["a", 3, 20], ["b", 4, 10]]));
        assert_eq!(
            json!(api.points(&format!("{base}?sortOrder=ASCENDING")).await?),
            json!([["a", 1, 50], ["b", 4, 10]])
        );
        // Written later, but older.
        api.must_put(&format!("{base}/a"), json!({"value": 5, "timestamp": 49})).await?;
        assert_eq!(
            json!(api.points(&format!("{base}/a")).await?),
            json!([["a", 1, 50], ["a", 5, 49], ["a", 3, 20]])
        );
        assert_eq!(json!(api.points(&base).await?[1]), json!(["a", 1, 50]));
        // The same time: the later write replaces the earlier.
        let again = api.must_put(&format!("{base}/a"), json!({"value": 6, "timestamp": 50})).await?;
        assert_eq!(api.get(&format!("{base}/a?from=50")).await?.json(), again);
        assert_eq!(api.get(&format!("{base}?sortOrder=ASCENDING&perPage=1")).await?.json(), again);
        // Ends of the range are inclusive.
        for (query, expected) in [
            ("from=20&to=49", json!([49, 20])),
            ("from=21&to=48", json!([])),
            ("filter=timestamp%3E20%26timestamp%3C50", json!([49])),
            ("filter=timestamp%3D20%7Ctimestamp%3D50&to=49", json!([20])),
            ("from=49", json!([50, 49])),
            ("to=20", json!([20])),
            ("from=50&to=20", json!([])),
            ("from=20&to=50&sortOrder=ASCENDING&perPage=1", json!([20, 49, 50])),
            ("perPage=1", json!([50, 49, 20])),
        ] {
            let times: Vec<Value> =
                api.points(&format!("{base}/a?{query}")).await?.iter().map(|p| p[2].clone()).collect();
            assert_eq!(json!(times), expected, "{query}");
        }
    }
    Ok(())
}

pub(super) async fn lists_of_properties_have_pages(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let base = &bases(&api).await?[0];
    let body: Vec<Value> =
        (0..10_000).map(|n| json!({"key": format!("k{n}"), "value": n, "timestamp": n})).collect();
    assert_eq!(api.must_put(base, json!(body)).await?.as_array().map(Vec::len), Some(10_000));
    let history: Vec<Value> = (0..10_000).map(|n| json!({"value": n, "timestamp": n})).collect();
    api.must_put(&format!("{base}/k7"), json!(history)).await?;
    assert_eq!(api.get(base).await?.json().as_array().map(Vec::len), Some(30));
    let all = api.points(&format!("{base}?perPage=100")).await?;
    let mut values: Vec<i64> = all.iter().filter_map(|point| point[1].as_i64()).collect();
    assert_eq!(values.len(), 10_000);
    values.sort_unstable();
    let mut expected: Vec<i64> = (0..10_000).filter(|n| *n != 7).chain([9_999]).collect();
    expected.sort_unstable();
    assert_eq!(values, expected, "k7 has its latest value");
    let times: Vec<i64> =
        api.points(&format!("{base}/k7?perPage=100")).await?.iter().filter_map(|p| p[2].as_i64()).collect();
    assert_eq!(times, (0..10_000).rev().collect::<Vec<_>>());

    // A page does not move when values come and go elsewhere.
    let first = api.get(&format!("{base}/k7?perPage=2&from=10")).await?;
    let url = next(&first).context("no Link")?;
    api.remove(&format!("{base}/k7?to=9998")).await?;
    api.must_put(
        &format!("{base}/k7"),
        json!([{"value": "new", "timestamp": 20_000}, {"value": "old", "timestamp": 9_997}]),
    )
    .await?;
    assert_eq!(json!(api.points(&url).await?), json!([["k7", "old", 9_997]]));
    let first = api.get(&format!("{base}?perPage=1")).await?;
    let key = first.json()[0]["key"].as_str().context("key")?.to_owned();
    let url = next(&first).context("no Link")?;
    let second = api.get(&url).await?.json();
    api.remove(&format!("{base}/{key}")).await?;
    api.must_put(&format!("{base}/fresh"), json!(1)).await?;
    api.must_put(
        &format!("{base}/{}", second[0]["key"].as_str().context("key")?),
        json!({"value": -1, "timestamp": -1}),
    )
    .await?;
    assert_eq!(api.get(&url).await?.json(), second);
    // A token opens its own list only.
    let token = url.split("nextPageToken=").nth(1).context("token")?;
    for wrong in [
        format!("{base}/k7?perPage=1&nextPageToken={token}"),
        format!("{base}?perPage=2&nextPageToken={token}"),
    ] {
        api.get(&wrong).await?.problem(400, 40004);
    }
    Ok(())
}

pub(super) async fn deleted_values_are_gone(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for base in bases(&api).await? {
        let fill = json!([
            {"key": "a", "value": 1, "timestamp": 1}, {"key": "a", "value": 2, "timestamp": 2},
            {"key": "a", "value": 3, "timestamp": 3}, {"key": "b", "value": 4, "timestamp": 4},
        ]);
        api.must_put(&base, fill.clone()).await?;
        // Before that time, which itself stays.
        api.remove(&format!("{base}/A?to=2")).await?;
        assert_eq!(json!(api.points(&format!("{base}/a")).await?), json!([["a", 3, 3], ["a", 2, 2]]));
        assert_eq!(api.rows("property_points").await?, 3);
        api.remove(&format!("{base}/a?to=-5")).await?;
        api.remove(&format!("{base}/a?to=4")).await?;
        assert_eq!(json!(api.points(&base).await?), json!([["b", 4, 4]]));
        api.remove(&format!("{base}/a")).await?;
        api.remove(&format!("{base}/B")).await?;
        assert_eq!(api.points(&base).await?, Vec::<Value>::new());
        // What comes back begins anew.
        api.must_put(&format!("{base}/a"), json!({"value": 9, "timestamp": 0})).await?;
        assert_eq!(json!(api.points(&format!("{base}/a")).await?), json!([["a", 9, 0]]));
        api.must_put(&base, fill.clone()).await?;
        api.remove(&base).await?;
        assert_eq!(api.points(&base).await?, Vec::<Value>::new());
        // With the resource its properties go, and nothing is left behind.
        api.must_put(&base, fill.clone()).await?;
        let resource = base.trim_end_matches("/properties");
        api.remove(resource).await?;
        api.get(&base).await?.problem(404, 40401);
        for table in ["properties", "property_points", "properties_dropped"] {
            assert_eq!(api.rows(table).await?, 0, "{table}");
        }
    }
    Ok(())
}

pub(super) async fn documents_show_the_latest_values(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for kind in ["thngs", "products"] {
        let list = format!("/{kind}");
        let made = api.create(&list, json!({"name": "a", "properties": {"Temp": 1, "on": true}})).await?;
        assert_eq!(made["properties"], json!({"temp": 1, "on": true}));
        let path = format!("{list}/{}", made["id"].as_str().context("id")?);
        let listed =
            json!([{"key": "x", "value": [1], "timestamp": 5}, {"key": "X", "value": [2], "timestamp": 4}]);
        let other = api.create(&list, json!({"name": "b", "properties": listed})).await?;
        assert_eq!(other["properties"], json!({"x": [1]}));
        api.create(&list, json!({"name": "c", "properties": {}})).await?;
        api.must_put(
            &format!("{path}/properties"),
            json!([{"key": "temp", "value": 2}, {"key": "new", "value": "n"}]),
        )
        .await?;
        let expected = json!({"temp": 2, "on": true, "new": "n"});
        let read = api.get(&path).await?.json();
        assert_eq!(read["properties"], expected);
        // A client sends back what it read: properties have paths of their own.
        let mut whole = read.clone();
        whole["properties"] = json!({"temp": 3, "~connected": true, "other": null});
        assert_eq!(api.must_put(&path, whole).await?["properties"], expected);
        assert_eq!(api.must_put(&path, json!({"properties": 7})).await?["properties"], expected);
        let all = api.get(&format!("{list}?sortOrder=ASCENDING")).await?.json();
        assert_eq!(
            (&all[0]["properties"], &all[1]["properties"], all[2].get("properties")),
            (&expected, &json!({"x": [1]}), None)
        );
        // Many and large values are cut, newest first; their own list has them all.
        let many: Vec<Value> = (0..150).map(|n| json!({"key": format!("m{n:03}"), "value": n})).collect();
        api.must_put(&format!("{path}/properties"), json!(many)).await?;
        let shown = api.get(&path).await?.json()["properties"].as_object().context("shown")?.len();
        assert_eq!(shown, 100);
        let large = "x".repeat(16_000);
        for n in 0..6 {
            api.must_put(&format!("{path}/properties/large{n}"), json!(large)).await?;
        }
        let shown = api.get(&list).await?.json()[2]["properties"].clone();
        let keys: Vec<&String> = shown.as_object().context("shown")?.keys().collect();
        assert_eq!(keys, ["large2", "large3", "large4", "large5"]);
        assert_eq!(api.points(&format!("{path}/properties?perPage=100")).await?.len(), 159);
    }
    Ok(())
}

pub(super) async fn system_properties_stay(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let base = bases(&api).await?.remove(0);
    let resource = base.split('/').nth(2).context("id")?.to_owned();
    let key = PropertyKey::parse("~connected").map_err(anyhow::Error::msg)?;
    let (timestamp, created_at) = (UnixMillis(5), UnixMillis(6));
    let point = Point { key, value: json!(true), timestamp, created_at };
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let values = properties::Values {
        account: api.made.account,
        resource: &resource,
        points: std::slice::from_ref(&point),
    };
    properties::write(&mut tx, &[values], point.created_at).await?;
    tx.commit().await?;
    api.must_put(&format!("{base}/a"), json!({"value": 1, "timestamp": 1})).await?;
    let both = json!([["a", 1, 1], ["~connected", true, 5]]);
    assert_eq!(json!(api.points(&base).await?), both);
    api.remove(&base).await?;
    assert_eq!(json!(api.points(&base).await?), json!([["~connected", true, 5]]));
    assert_eq!(json!(api.points(&format!("{base}/~Connected")).await?), json!([["~connected", true, 5]]));
    assert_eq!(
        api.get(&format!("/thngs/{resource}")).await?.json()["properties"],
        json!({"~connected": true})
    );
    api.remove(&format!("/thngs/{resource}")).await?;
    assert_eq!(api.rows("property_points").await?, 0);
    Ok(())
}

crate::on_both_engines!(
    written_values_are_returned,
    the_latest_value_has_the_greatest_timestamp,
    lists_of_properties_have_pages,
    deleted_values_are_gone,
    documents_show_the_latest_values,
    system_properties_stay,
);
