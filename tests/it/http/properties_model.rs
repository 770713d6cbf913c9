//! Properties against a simple model: random writes, deletes and reads with colliding and decreasing timestamps.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::{Value, json};
use tests::{db::Engine, repetitions};
use tokio::{runtime::Handle, task::block_in_place};

use super::{Api, paging::next};

const KEYS: [&str; 3] = ["a", "b", "Ä"];

#[derive(Debug, Clone)]
enum Step {
    /// Several values in one request: key, value, time.
    Write(Vec<(usize, i64, i64)>),
    WriteOne(usize, i64, i64),
    Delete(usize, Option<i64>),
    DeleteAll,
    Read(usize, i64, i64, bool, u8),
    ReadAll(bool, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (key, time) = (0..KEYS.len(), -4..12_i64);
    let point = (key.clone(), 0..100_i64, time.clone());
    prop_oneof![
        4 => proptest::collection::vec(point.clone(), 0..12).prop_map(Step::Write),
        3 => point.prop_map(|(key, value, at)| Step::WriteOne(key, value, at)),
        2 => (key.clone(), proptest::option::of(time.clone())).prop_map(|(key, to)| Step::Delete(key, to)),
        1 => Just(Step::DeleteAll),
        4 => (key, time.clone(), time, any::<bool>(), 1..5_u8)
            .prop_map(|(key, from, to, ascending, page)| Step::Read(key, from, to, ascending, page)),
        3 => (any::<bool>(), 1..5_u8).prop_map(|(ascending, page)| Step::ReadAll(ascending, page)),
    ]
}

/// What a resource should hold: properties in the order in which they were made.
#[derive(Debug, Default)]
struct Model(Vec<(usize, BTreeMap<i64, i64>)>);

impl Model {
    fn write(&mut self, points: &[(usize, i64, i64)]) {
        // Those of one request are made in the order of their keys.
        let mut fresh: Vec<usize> = points.iter().map(|point| point.0).collect();
        fresh.sort_by_key(|key| KEYS[*key].to_lowercase());
        for key in fresh {
            if self.find(key).is_none() {
                self.0.push((key, BTreeMap::new()));
            }
        }
        for (key, value, at) in points {
            if let Some((_, history)) = self.0.iter_mut().find(|(known, _)| known == key) {
                history.insert(*at, *value);
            }
        }
    }

    fn delete(&mut self, key: usize, to: Option<i64>) {
        for (_, history) in self.0.iter_mut().filter(|(known, _)| *known == key) {
            history.retain(|at, _| to.is_some_and(|to| *at >= to));
        }
        self.0.retain(|(_, history)| !history.is_empty());
    }

    fn find(&self, key: usize) -> Option<&BTreeMap<i64, i64>> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, history)| history)
    }

    fn latest(&self) -> Vec<Value> {
        let latest = |(key, history): &(usize, BTreeMap<i64, i64>)| {
            history.last_key_value().map(|(at, value)| point(*key, *value, *at))
        };
        self.0.iter().filter_map(latest).collect()
    }
}

fn point(key: usize, value: i64, at: i64) -> Value {
    json!([KEYS[key].to_lowercase(), value, at])
}

fn uri(base: &str, key: usize) -> String {
    format!("{base}/{}", percent_encoding::utf8_percent_encode(KEYS[key], percent_encoding::NON_ALPHANUMERIC))
}

async fn read(api: &Api, uri: &str, per_page: u8) -> Result<Vec<Value>> {
    let (mut all, mut url) = (Vec::new(), uri.to_owned());
    loop {
        let answer = api.get(&url).await?;
        ensure!(answer.status == 200, "{url}: {answer:?}");
        let page = answer.json();
        let page = page.as_array().context("array")?;
        ensure!(page.len() <= usize::from(per_page), "{url}: {page:?}");
        all.extend(page.iter().map(|one| json!([one["key"], one["value"], one["timestamp"]])));
        let Some(next) = next(&answer) else { return Ok(all) };
        ensure!(page.len() == usize::from(per_page), "a short page with a next one");
        url = next;
    }
}

/// Takes a step on both sides.
async fn take(api: &Api, base: &str, model: &mut Model, step: &Step) -> Result<()> {
    let sort = |ascending: bool| if ascending { "ASCENDING" } else { "DESCENDING" };
    match step {
        Step::Write(points) => {
            let body: Vec<Value> = points
                .iter()
                .map(|(key, value, at)| json!({"key": KEYS[*key], "value": value, "timestamp": at}))
                .collect();
            api.put(base, json!(body)).await?.must_be(200)?;
            model.write(points);
        }
        Step::WriteOne(key, value, at) => {
            let body = json!({"value": value, "timestamp": at});
            api.put(&uri(base, *key), body).await?.must_be(200)?;
            model.write(&[(*key, *value, *at)]);
        }
        Step::Delete(key, to) => {
            let query = to.map(|to| format!("?to={to}")).unwrap_or_default();
            api.delete(&format!("{}{query}", uri(base, *key))).await?.must_be(200)?;
            model.delete(*key, *to);
        }
        Step::DeleteAll => {
            ensure!(api.delete(base).await?.status == 200);
            model.0.clear();
        }
        Step::Read(key, from, to, ascending, per_page) => {
            let query = format!("from={from}&to={to}&perPage={per_page}&sortOrder={}", sort(*ascending));
            let found = read(api, &format!("{}?{query}", uri(base, *key)), *per_page).await?;
            let history = model.find(*key).into_iter().flatten();
            let mut expected: Vec<Value> = history
                .filter(|(at, _)| (from..=to).contains(at))
                .map(|(at, value)| point(*key, *value, *at))
                .collect();
            if !ascending {
                expected.reverse();
            }
            ensure!(found == expected, "{found:?} instead of {expected:?}");
        }
        Step::ReadAll(ascending, per_page) => {
            let query = format!("perPage={per_page}&sortOrder={}", sort(*ascending));
            let found = read(api, &format!("{base}?{query}"), *per_page).await?;
            let mut expected = model.latest();
            if !ascending {
                expected.reverse();
            }
            ensure!(found == expected, "{found:?} instead of {expected:?}");
        }
    }
    Ok(())
}

/// One sequence of steps on a Thng of its own; what is left at the end is compared whole, and removed.
async fn run(api: &Api, steps: &[Step]) -> Result<()> {
    let made = api.create("/thngs", json!({"name": "x"})).await?;
    let resource = format!("/thngs/{}", made["id"].as_str().context("id")?);
    let (base, mut model) = (format!("{resource}/properties"), Model::default());
    for step in steps {
        take(api, &base, &mut model, step).await?;
    }
    take(api, &base, &mut model, &Step::ReadAll(true, 4)).await?;
    for key in 0..KEYS.len() {
        take(api, &base, &mut model, &Step::Read(key, -5, 20, false, 3)).await?;
    }
    let shown: BTreeMap<String, Value> = model
        .latest()
        .into_iter()
        .map(|one| (one[0].as_str().unwrap_or_default().to_owned(), one[1].clone()))
        .collect();
    let document = api.get(&resource).await?.json();
    let expected = (!shown.is_empty()).then(|| json!(shown));
    ensure!(document.get("properties") == expected.as_ref(), "{document} instead of {expected:?}");
    ensure!(api.delete(&resource).await?.status == 200);
    let left = api.fingerprint().await?;
    for table in ["properties", "property_points", "properties_dropped"] {
        ensure!(left.get(table).is_some_and(Vec::is_empty), "{table}: {:?}", left.get(table));
    }
    Ok(())
}

pub(super) async fn the_service_and_the_model_agree(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut runner = TestRunner::new(Config {
        cases: repetitions(20, 40),
        failure_persistence: None,
        ..Config::default()
    });
    let result = block_in_place(|| {
        runner.run(&proptest::collection::vec(step(), 1..25), |steps| {
            let done = Handle::current().block_on(run(&api, &steps));
            done.map_err(|error| TestCaseError::fail(format!("{error:#}")))
        })
    });
    result.map_err(|error| anyhow::anyhow!("{error}"))
}

crate::on_both_engines!(the_service_and_the_model_agree);
