//! Location history of Thngs: writes, the latest, places, deletion.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, paging::next};

fn point(longitude: f64, latitude: f64) -> Value {
    json!({"type": "Point", "coordinates": [longitude, latitude]})
}

fn timestamps(list: &Value) -> Vec<i64> {
    list.as_array().unwrap().iter().map(|entry| entry["timestamp"].as_i64().unwrap()).collect()
}

pub(super) async fn a_thng_shows_its_latest_location(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let shop = api.create("/places", json!({"name": "s", "latitude": 1.5, "longitude": 2.5})).await?;
    let nowhere = api.create("/places", json!({"name": "n"})).await?;
    let thng = api.create("/thngs", json!({"name": "t", "identifiers": {"k": "1"}})).await?;
    assert_eq!(thng.get("location"), None);
    let thng_path = format!("/thngs/{}", thng["id"].as_str().context("id")?);
    let path = format!("{thng_path}/location");

    // As the vendor's client sends it: an array, without a timestamp.
    let sent = json!([{"position": point(-17.3, 36.0)}]);
    let written = api.put(&path, sent).await?.must_be(200)?;
    let entry = written.json()[0].clone();
    assert_eq!((&entry["latitude"], &entry["longitude"]), (&json!(36.0), &json!(-17.3)));
    assert_eq!(entry["position"], point(-17.3, 36.0));
    assert!(entry["timestamp"].as_i64() >= thng["createdAt"].as_i64(), "{entry}");
    let read = api.get(&thng_path).await?.json();
    assert_eq!(read["location"]["position"], entry["position"]);
    assert_eq!(read["location"]["timestamp"], entry["timestamp"]);
    assert_eq!(read["updatedAt"], thng["updatedAt"], "a location is no change of the Thng");

    // A place gives its point, unless one is given; the latest by timestamp shows, not the last written.
    let latest = entry["timestamp"].as_i64().context("timestamp")? + 1_000_000;
    let sent = json!([
        {"place": shop["id"], "timestamp": latest, "customFields": {"Dock": 3}},
        {"place": shop["id"], "latitude": 9, "longitude": 8, "timestamp": 7},
        {"place": nowhere["id"], "timestamp": 8},
    ]);
    let written = api.put("/thngs/k:1/location", sent).await?.json();
    assert_eq!(written[0]["position"], point(2.5, 1.5));
    assert_eq!((&written[0]["place"], &written[0]["customFields"]), (&shop["id"], &json!({"Dock": 3})));
    assert_eq!(written[1]["position"], point(8.0, 9.0));
    assert_eq!(written[2].get("position"), None);
    for thng in [api.get(&thng_path).await?.json(), api.get("/thngs").await?.json()[0].clone()] {
        assert_eq!(
            (&thng["location"]["timestamp"], &thng["location"]["place"]),
            (&json!(latest), &shop["id"])
        );
    }
    // What was read goes back in, and changes no location.
    let whole = api.get(&thng_path).await?.json();
    let mut sent = whole.clone();
    sent["location"] = json!({"position": point(0.0, 0.0)});
    let changed = api.put(&thng_path, sent).await?.json();
    assert_eq!(changed["location"], whole["location"]);

    // One object instead of an array; nothing at all is no fault.
    let one = api.put(&path, json!({"latitude": 1, "longitude": 1, "timestamp": 9})).await?;
    assert_eq!(timestamps(&one.json()), [9]);
    assert_eq!(api.put(&path, json!([])).await?.json(), json!([]));

    // History: latest first, by pages, between times, by filter.
    let all = api.get(&path).await?.json();
    assert_eq!(timestamps(&all), [latest, entry["timestamp"].as_i64().unwrap(), 9, 8, 7]);
    let first = api.get(&format!("{path}?perPage=2&sortOrder=ASCENDING&to=9")).await?;
    assert_eq!(timestamps(&first.json()), [7, 8]);
    let rest = api.get(&next(&first).context("Link")?).await?;
    assert_eq!((timestamps(&rest.json()), next(&rest)), (vec![9], None));
    for (query, expected) in [
        ("from=8&to=9", vec![9, 8]),
        ("from=9&to=8", vec![]),
        ("from=7&to=100&filter=timestamp%3C9", vec![8, 7]),
        ("filter=timestamp%3D8", vec![8]),
    ] {
        assert_eq!(timestamps(&api.get(&format!("{path}?{query}")).await?.json()), expected, "{query}");
    }

    // Removal before a time keeps that time; removal of the latest shows the one before.
    let removed = api.delete(&format!("{path}?to=8")).await?;
    assert_eq!((removed.status.as_u16(), removed.bytes.len()), (200, 0));
    assert_eq!(timestamps(&api.get(&path).await?.json()).len(), 4);
    api.delete(&path).await?;
    assert_eq!(api.get(&path).await?.json(), json!([]));
    assert_eq!(api.get(&thng_path).await?.json().get("location"), None);
    Ok(())
}

pub(super) async fn a_thng_can_be_created_with_a_location(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api
        .create("/thngs", json!({"name": "t", "location": {"position": point(3.0, 4.0), "timestamp": 5}}))
        .await?;
    assert_eq!(
        thng["location"],
        json!({"timestamp": 5, "latitude": 4.0, "longitude": 3.0,
        "position": point(3.0, 4.0)})
    );
    let path = format!("/thngs/{}", thng["id"].as_str().context("id")?);
    assert_eq!(api.get(&path).await?.json(), thng);
    assert_eq!(timestamps(&api.get(&format!("{path}/location")).await?.json()), [5]);
    // Another Thng's history is its own, and goes with it.
    let other = api.create("/thngs", json!({"name": "o"})).await?;
    let other = format!("/thngs/{}/location", other["id"].as_str().context("id")?);
    assert_eq!(api.get(&other).await?.json(), json!([]));
    assert_eq!(api.delete(&path).await?.status, 200);
    assert_eq!(api.fingerprint().await?["thng_locations"], [""; 0]);
    Ok(())
}

pub(super) async fn wrong_locations_change_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (_, other_thng) = api.others().await?;
    let theirs =
        api.call_as(&api.other_key, Method::POST, "/places", Some(json!({"name": "x"}))).await?.json();
    let thng = api.create("/thngs", json!({"name": "t", "location": {"position": point(3.0, 4.0)}})).await?;
    let path = format!("/thngs/{}/location", thng["id"].as_str().context("id")?);
    let before = api.fingerprint().await?;
    let good = json!({"position": point(1.0, 1.0)});
    for (body, faults) in [
        (json!([good, {}, {"latitude": 1}]), vec!["[1] must have", "[2].latitude needs"]),
        (json!([good, 1]), vec!["[1] must be an object"]),
        (json!({"position": point(1.0, 91.0)}), vec!["location.position.coordinates"]),
        (json!([good, {"place": "UKXAGyEf8SQ5eTDmVgGpHqAa"}]), vec!["[1].place: the place"]),
        (json!([{"place": theirs["id"]}]), vec!["[0].place: the place"]),
        (json!(vec![good.clone(); 1_001]), vec!["at most 1000"]),
        (json!("x"), vec!["must be an array"]),
    ] {
        let errors = api.put(&path, body.clone()).await?.problem(400, 40001);
        assert_eq!(errors.len(), faults.len(), "{body}: {errors:?}");
        for (error, fault) in errors.iter().zip(faults) {
            assert!(error.contains(fault), "{body}: {error}");
        }
    }
    for query in ["from=x", "to=1.5", "to=9223372036854775807", "filter=place%3Dx"] {
        api.get(&format!("{path}?{query}")).await?.problem(400, 40003);
    }
    api.delete(&format!("{path}?to=x")).await?.problem(400, 40003);
    let body = json!({"name": "x", "location": {"latitude": 1}});
    api.post("/thngs", body).await?.problem(400, 40001);
    for absent in ["UKXAGyEf8SQ5eTDmVgGpHqAa", &other_thng, "k:none"] {
        let path = format!("/thngs/{absent}/location");
        api.get(&path).await?.problem(404, 40401);
        api.put(&path, json!([good])).await?.problem(404, 40401);
        api.delete(&path).await?.problem(404, 40401);
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

crate::on_both_engines!(
    a_thng_shows_its_latest_location,
    a_thng_can_be_created_with_a_location,
    wrong_locations_change_nothing,
);
