//! Many named resources by one request: `PUT` and `DELETE` with `?ids=`, arrays on `POST`.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::Api;

const KINDS: [&str; 7] = ["thngs", "products", "places", "collections", "files", "projects", "batches"];
const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

fn id_of(made: &Value) -> Result<String> {
    Ok(made["id"].as_str().with_context(|| made.to_string())?.to_owned())
}

async fn many_are_changed_and_removed_together_or_not_at_all(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for kind in KINDS {
        let path = format!("/{kind}");
        let (a, b) = (
            id_of(&api.create(&path, json!({"name": "a"})).await?)?,
            id_of(&api.create(&path, json!({"name": "b"})).await?)?,
        );
        let theirs =
            api.call_as(&api.other_key, Method::POST, &path, Some(json!({"name": "t"}))).await?.json();
        let theirs = id_of(&theirs)?;
        let before = api.fingerprint().await?;
        let change = || Some(json!({"tags": ["bulk"], "description": "changed"}));
        for (ids, status, code) in [
            (format!("{a},{UNKNOWN}"), 404, 40401),
            (format!("{a},{theirs}"), 404, 40401),
            (format!("{a},x"), 400, 40003),
            (String::new(), 400, 40003),
        ] {
            let uri = format!("{path}?ids={ids}");
            for method in [Method::PUT, Method::DELETE] {
                api.call(method, &uri, change()).await?.problem(status, code);
            }
        }
        for method in [Method::PUT, Method::DELETE] {
            api.call(method, &path, change()).await?.problem(400, 40003);
        }
        api.call(Method::PUT, &format!("{path}?ids={a}"), Some(json!({"name": 1})))
            .await?
            .problem(400, 40001);
        assert_eq!(api.fingerprint().await?, before, "{kind}: all of them, or none");

        let uri = format!("{path}?ids={a},{b},{a}");
        let answer = api.call(Method::PUT, &uri, change()).await?;
        ensure!(answer.status == 204 && answer.bytes.is_empty(), "{kind}: {answer:?}");
        ensure!(answer.header("x-result-count") == Some("2"), "{kind}: {answer:?}");
        for id in [&a, &b] {
            let read = api.get(&format!("{path}/{id}")).await?.json();
            ensure!(read["description"] == "changed", "{kind}: {read}");
        }
        let answer = api.call(Method::DELETE, &uri, None).await?;
        ensure!(answer.status == 200 && answer.bytes.is_empty(), "{kind}: {answer:?}");
        ensure!(answer.header("x-result-count") == Some("2"), "{kind}: {answer:?}");
        for id in [&a, &b] {
            api.get(&format!("{path}/{id}")).await?.problem(404, 40401);
        }
        let answer = api.call_as(&api.other_key, Method::GET, &format!("{path}/{theirs}"), None).await?;
        ensure!(answer.status == 200, "{kind}: {answer:?}");
    }
    Ok(())
}

async fn each_item_of_an_array_has_its_own_result(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for kind in ["thngs", "products"] {
        let path = format!("/{kind}");
        let items = json!([{"name": "a", "tags": ["x"]}, {"name": 1}, {"name": "b", "product": UNKNOWN}, {"name": "c"}]);
        let answer = api.call(Method::POST, &path, Some(items)).await?;
        ensure!(answer.status == 200, "{answer:?}");
        let results = answer.json();
        let statuses: Vec<&Value> =
            results.as_array().context("array")?.iter().map(|one| &one["status"]).collect();
        // A product has no member `product`: there it is ignored.
        let third = if kind == "thngs" { 400 } else { 201 };
        ensure!(statuses == [201, 400, third, 201], "{kind}: {results}");
        ensure!(results[1]["code"] == 40001 && results[1]["errors"][0].as_str().is_some(), "{results}");
        let read = api.get(&format!("{path}/{}", id_of(&results[0])?)).await?.json();
        ensure!(read["name"] == "a" && read["tags"] == json!(["x"]), "{read}");
        let listed = api.get(&path).await?.json();
        let made = statuses.iter().filter(|status| **status == 201).count();
        ensure!(listed.as_array().map(Vec::len) == Some(made), "{listed}");

        let before = api.fingerprint().await?;
        for items in [json!([]), json!(vec![json!({"name": "x"}); 1_001])] {
            let faults = api.call(Method::POST, &path, Some(items)).await?.problem(400, 40001);
            ensure!(faults[0].starts_with("The array must hold 1 to 1000 items"), "{faults:?}");
        }
        assert_eq!(api.fingerprint().await?, before);
        let many = json!(vec![json!({"name": "many"}); 1_000]);
        let results = api.call(Method::POST, &path, Some(many)).await?.json();
        let all = results.as_array().context("array")?;
        ensure!(all.len() == 1_000 && all.iter().all(|one| one["status"] == 201), "{results}");
    }
    Ok(())
}

crate::on_both_engines!(
    many_are_changed_and_removed_together_or_not_at_all,
    each_item_of_an_array_has_its_own_result
);
