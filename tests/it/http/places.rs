//! Places: members, positions in every form, and the search for the nearest.

use anyhow::{Context, Result};
use axum::http::Method;
use countries::distance::distance_km;
use kernel::domain::location::Coordinates;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, paging::walk};

fn path(place: &Value) -> String {
    format!("/places/{}", place["id"].as_str().unwrap())
}

pub(super) async fn a_place_comes_back_with_its_point_in_every_form(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let sent = json!({"name": "Shop", "description": "d", "type": "store", "icon": "https://x.test/i.png",
        "address": {"city": "Berlin", "Lines": ["a", "b"]}, "tags": ["a"], "customFields": {"Color": "red"},
        "identifiers": {"factory": "F1"}, "scopes": {"users": ["all"], "projects": []}});
    let place = api.create("/v2/places", sent.clone()).await?;
    for name in ["name", "description", "type", "icon", "address", "tags", "customFields", "identifiers"] {
        assert_eq!(place[name], sent[name], "{name}");
    }
    for name in ["latitude", "longitude", "position", "scopes", "activatedAt"] {
        assert_eq!(place.get(name), None, "{name}");
    }
    for reference in [path(&place), "/places/factory:F1".to_owned(), "/v2/places/factory%3AF1".to_owned()] {
        assert_eq!(api.get(&reference).await?.json(), place, "{reference}");
    }
    let point = json!({"type": "Point", "coordinates": [-17.25, 36.5]});
    for given in [
        json!({"position": point}),
        json!({"latitude": 36.5, "longitude": -17.25}),
        json!({"latitude": 36.5, "longitude": -17.25, "position": point}),
    ] {
        let mut body = given.clone();
        body["name"] = json!("x");
        let made = api.create("/places", body).await?;
        let changed = api.put(&path(&place), given.clone()).await?.json();
        for place in [&made, &changed, &api.get(&path(&made)).await?.json()] {
            assert_eq!(place["position"], point, "{given}");
            assert_eq!((&place["latitude"], &place["longitude"]), (&json!(36.5), &json!(-17.25)), "{given}");
        }
    }
    let whole = api.get(&format!("{}?withScopes=true", path(&place))).await?.json();
    assert_eq!(whole["scopes"], sent["scopes"]);
    assert!(whole["updatedAt"].as_i64() > whole["createdAt"].as_i64());
    // All that was given back goes in again, and a point in one form moves it.
    assert_eq!(api.put(&path(&place), whole).await?.status, 200);
    let moved = json!({"latitude": -1, "longitude": 180});
    let moved = api.put("/places/factory:F1", moved).await?.json();
    assert_eq!(moved["position"]["coordinates"], json!([180.0, -1.0]));
    assert_eq!(moved["address"], sent["address"]);
    let gone = api.delete("/places/factory:F1").await?;
    assert_eq!((gone.status.as_u16(), gone.bytes.as_slice()), (200, &b""[..]));
    api.get(&path(&place)).await?.problem(404, 40401);
    Ok(())
}

pub(super) async fn the_nearest_come_first_page_by_page(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut points = Vec::new();
    for latitude in [-90.0, -89.99, -45.0, 0.0, 0.000_01, 51.5, 89.99] {
        for longitude in [-180.0, -179.99, -0.1, 0.0, 13.4, 179.99, 180.0] {
            points.push(Coordinates::new(latitude, longitude).context("point")?);
        }
    }
    for (n, at) in points.iter().enumerate() {
        let body = json!({"name": n.to_string(), "latitude": at.latitude(), "longitude": at.longitude()});
        api.create("/places", body).await?;
    }
    api.create("/places", json!({"name": "nowhere"})).await?;
    let theirs = json!({"name": "theirs", "latitude": 0, "longitude": 0});
    api.call_as(&api.other_key, Method::POST, "/places", Some(theirs)).await?;
    for (latitude, longitude) in [
        (0.0, 0.0),
        (0.0, 180.0),
        (10.0, -179.995),
        (90.0, 0.0),
        (-90.0, 77.0),
        (51.5, -0.12),
        (-80.0, 100.0),
    ] {
        let center = Coordinates::new(latitude, longitude).context("center")?;
        for max_km in [None, Some(0.0), Some(2.0), Some(1_500.0), Some(12_000.0)] {
            let mut expected: Vec<(i64, usize)> = points
                .iter()
                .enumerate()
                .map(|(n, at)| (distance_km(center, *at), n))
                .filter(|(km, _)| max_km.is_none_or(|max| (km * 1e6).round() <= max * 1e6))
                .map(|(km, n)| ((km * 1e6).round() as i64, n))
                .collect();
            expected.sort_unstable();
            let names: Vec<String> = expected.iter().map(|(_, n)| n.to_string()).collect();
            let max = max_km.map(|max| format!("&maxDist={max}")).unwrap_or_default();
            let url = format!("/places?lat={latitude}&lon={longitude}{max}&perPage=9");
            let pages = walk(&api, &url).await?;
            assert!(pages.iter().rev().skip(1).all(|page| page.len() == 9), "{url}: {pages:?}");
            assert_eq!(pages.concat(), names, "{url}");
        }
    }
    // Removed and made while somebody pages: no gap, no repetition.
    let first = api.get("/places?lat=51.5&lon=13.4&perPage=2").await?;
    assert_eq!(first.json()[0]["name"], "39");
    Ok(())
}

pub(super) async fn invalid_searches_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let place = api.create("/places", json!({"name": "a", "latitude": 1, "longitude": 1})).await?;
    let id = place["id"].as_str().context("id")?;
    for (query, fault) in [
        ("lat=1", "lat and lon"),
        ("lon=1", "lat and lon"),
        ("maxDist=1", "lat and lon"),
        ("lat=90.1&lon=1", "lat must"),
        ("lat=1&lon=-180.5", "lon must"),
        ("lat=1&lon=x", "lon must"),
        ("lat=1&lon=1&maxDist=-1", "maxDist must"),
        ("lat=1&lon=1&maxDist=NaN", "maxDist must"),
        ("lat=1&lon=1&filter=name%3Da", "filter cannot"),
        (&format!("lat=1&lon=1&ids={id}"), "ids cannot"),
        ("filter=product%3Dx", "filter"),
    ] {
        let faults = api.get(&format!("/places?{query}")).await?.problem(400, 40003);
        assert!(faults.iter().any(|text| text.contains(fault)), "{query}: {faults:?}");
    }
    // A page of one search is no page of another.
    api.create("/places", json!({"name": "b", "latitude": 1, "longitude": 1})).await?;
    let answer = api.get("/places?lat=1&lon=1&perPage=1").await?;
    let next = super::paging::next(&answer).context("Link")?;
    assert_eq!(api.get(&next).await?.json()[0]["name"], "b");
    api.get(&next.replace("lat=1", "lat=2")).await?.problem(400, 40004);
    Ok(())
}

pub(super) async fn places_are_filtered(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for (name, factory) in [("a", "1"), ("b", "1"), ("b", "2")] {
        api.create("/places", json!({"name": name, "identifiers": {"factory": factory}})).await?;
    }
    for (query, names) in [
        ("", vec!["b", "b", "a"]),
        ("?filter=name%3Db", vec!["b", "b"]),
        ("?filter=identifiers.factory%3D1", vec!["b", "a"]),
        ("?sortOrder=ASCENDING", vec!["a", "b", "b"]),
    ] {
        assert_eq!(walk(&api, &format!("/places{query}")).await?.concat(), names, "{query}");
    }
    api.get("/places/factory:1").await?.problem(409, 40901);
    Ok(())
}

crate::on_both_engines!(
    a_place_comes_back_with_its_point_in_every_form,
    the_nearest_come_first_page_by_page,
    invalid_searches_are_refused,
    places_are_filtered,
);
