//! Requests of existing clients that the platform API does not show.

use anyhow::{Context, Result, ensure};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use serde_json::{Value, json};
use tests::db::Engine;

use super::Api;

fn names(page: &Value) -> Vec<&str> {
    page.as_array().into_iter().flatten().filter_map(|row| row["name"].as_str()).collect()
}

/// The vendor's client encodes the keys and values of a filter that is an object, and then the whole.
async fn doubly_encoded_filters_find_the_same_rows(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for (name, identifiers, tags) in [
        ("two words", json!({"gs1:21": "S1"}), json!(["a"])),
        ("100%25", json!({"gs1%3A21": "S2"}), json!(["b"])),
        ("100%", json!({"gs1:21": "S&3"}), json!(["c", "a"])),
    ] {
        api.create("/thngs", json!({"name": name, "identifiers": identifiers, "tags": tags})).await?;
    }
    for (query, expected) in [
        ("identifiers.gs1%253A21%3DS1", vec!["two words"]),
        ("name%3Dtwo%2520words", vec!["two words"]),
        ("name%3Dtwo%2520words%26identifiers.gs1%253A21%3DS1", vec!["two words"]),
        ("identifiers.gs1%253A21%3DS%25263", vec!["100%"]),
        // What is written, or what it decodes to.
        ("identifiers.gs1%253A21%3DS2", vec!["100%25"]),
        ("name%3D100%2525", vec!["100%", "100%25"]),
        ("name!%3D100%2525", vec!["two words"]),
        ("name%3D100%25", vec!["100%"]),
        ("name%3Dx%2500", vec![]),
        ("name%3Dx%25FF", vec![]),
        // Alternatives of one condition.
        ("tags%3Db%7Cc", vec!["100%", "100%25"]),
        ("tags%3Da%7Cb%26name~100", vec!["100%", "100%25"]),
        ("tags!%3Db%7Cc", vec!["two words"]),
    ] {
        let answer = api.get(&format!("/thngs?filter={query}")).await?;
        ensure!(answer.status == 200, "{query}: {answer:?}");
        ensure!(names(&answer.json()) == expected, "{query}: {:?}", answer.json());
    }
    api.get("/thngs?filter=co%256Cor%3Dred").await?.problem(400, 40003);
    Ok(())
}

async fn the_first_generation_gets_json_of_its_redirections(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for kind in ["thngs", "products"] {
        let made = api.create(&format!("/{kind}"), json!({"name": "x"})).await?;
        let uri = format!("/{kind}/{}/redirector", made["id"].as_str().context("id")?);
        for (accept, status, media_type) in [
            (None, 201, "application/json"),
            (Some("*/*"), 201, "application/json"),
            (Some("application/json"), 201, "application/json"),
            (Some("text/html"), 201, "application/json"),
            (Some("application/json, text/plain, */*"), 201, "application/json"),
            (Some("image/*"), 200, "image/png"),
            (Some("image/png"), 200, "image/png"),
            (Some("image/svg+xml"), 200, "image/svg+xml"),
        ] {
            let mut request = Request::builder()
                .method(Method::POST)
                .uri(&uri)
                .header(header::HOST, "api.example:8080")
                .header(header::AUTHORIZATION, &api.key)
                .header(header::CONTENT_TYPE, "application/json");
            if let Some(accept) = accept {
                request = request.header(header::ACCEPT, accept);
            }
            let body = Body::from(json!({"defaultRedirectUrl": "https://example.com/"}).to_string());
            let answer = api.send(request.body(body)?).await?;
            ensure!(answer.status == status, "{accept:?}: {answer:?}");
            ensure!(answer.header("content-type") == Some(media_type), "{accept:?}: {answer:?}");
            ensure!(answer.header("location").is_some(), "{accept:?}");
        }
    }
    Ok(())
}

/// `?from=` would have removed everything: no DELETE takes a parameter that it does not honour.
async fn unknown_parameters_on_delete_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "x", "properties": {"temp": 1}})).await?;
    let uri = format!("/thngs/{}/properties/temp", thng["id"].as_str().context("id")?);
    let before = api.fingerprint().await?;
    let faults = api.delete(&format!("{uri}?from=1")).await?.problem(400, 40003);
    ensure!(faults == ["from is not a parameter of this operation."], "{faults:?}");
    let document = control::http::document();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().context("paths")? {
        if item.get("delete").is_none() {
            continue;
        }
        count += 1;
        let uri: String = path
            .split('/')
            .map(|part| if part.starts_with('{') { "UKXAGyEf8SQ5eTDmVgGpHqAa" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        for query in ["olderThan=1", "ids=&Ids=x", "to=1&wait=edges&more"] {
            let answer = api.delete(&format!("/v2{uri}?{query}")).await?;
            let faults = answer.problem(400, 40003);
            ensure!(faults.iter().any(|fault| fault.ends_with("of this operation.")), "{path}: {faults:?}");
        }
    }
    ensure!(count > 30, "only {count} paths");
    assert_eq!(api.fingerprint().await?, before);
    // Those that it knows, and the key, are taken.
    api.call_as("", Method::DELETE, &format!("{uri}?to=1&access_token={}", api.key), None)
        .await?
        .must_be(200)?;
    Ok(())
}

async fn an_anonymous_user_needs_no_body(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = api.create("/projects", json!({"name": "p"})).await?;
    let uri = format!("/projects/{}/applications", project["id"].as_str().context("id")?);
    let app = api.create(&uri, json!({"name": "a"})).await?;
    let key = app["appApiKey"].as_str().context("key")?;
    let made = api.call_as(key, Method::POST, "/auth/evrythng/users?anonymous=true", None).await?;
    ensure!(made.status == 201 && made.json()["status"] == "anonymous", "{made:?}");
    api.call_as(key, Method::POST, "/auth/evrythng/users", None).await?.problem(400, 40002);
    Ok(())
}

/// The vendor's Java client takes one status for each call, and 201 for most of its POSTs.
async fn the_java_client_gets_the_statuses_it_requires(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.codes_to_callers().await?;
    let project = api.create("/projects", json!({"name": "p"})).await?;
    let uri = format!("/projects/{}/applications", project["id"].as_str().context("id")?);
    let app = api.create(&uri, json!({"name": "a"})).await?;
    let app = app["appApiKey"].as_str().context("key")?;
    let credentials = json!({"email": "ada@example.com", "password": "correct horse"});
    let post = async |key: &str, uri: &str, body: Option<Value>| -> Result<Value> {
        let answer = api.call_as(key, Method::POST, uri, body).await?;
        ensure!(answer.status == 201, "{uri}: {answer:?}");
        Ok(answer.json())
    };
    let made = post(app, "/auth/evrythng/users", Some(credentials.clone())).await?;
    let uri = format!("/auth/evrythng/users/{}/validate", made["evrythngUser"].as_str().context("id")?);
    let code = json!({"activationCode": made["activationCode"]});
    post(app, &uri, Some(code)).await?;
    let user = post(app, "/auth/evrythng", Some(credentials)).await?;
    let out = post(user["evrythngApiKey"].as_str().context("key")?, "/auth/all/logout", None).await?;
    ensure!(out == json!({"logout": "ok"}), "{out}");
    Ok(())
}

async fn a_post_to_collections_equals_a_put(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut ids = Vec::new();
    for name in ["outer", "a", "b"] {
        let made = api.create("/collections", json!({"name": name})).await?;
        ids.push(made["id"].as_str().context("id")?.to_owned());
    }
    let uri = format!("/collections/{}/collections", ids[0]);
    for (method, member, status) in
        [(Method::POST, &ids[1], 200), (Method::PUT, &ids[2], 204), (Method::POST, &ids[1], 200)]
    {
        let answer = api.call(method, &uri, Some(json!([member]))).await?;
        ensure!(answer.status == status, "{answer:?}");
        ensure!(status == 204 || answer.json() == json!([member]), "{answer:?}");
    }
    ensure!(names(&api.get(&uri).await?.json()) == ["b", "a"]);
    let answer = api.post(&uri, json!([ids[0]])).await?;
    ensure!(answer.status == 409, "a collection in itself: {answer:?}");
    Ok(())
}

async fn the_key_of_a_thng_is_read_and_revoked(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "x"})).await?["id"].as_str().context("id")?.to_owned();
    let uri = format!("/auth/evrythng/thngs/{thng}");
    for method in [Method::GET, Method::DELETE] {
        api.call(method, &uri, None).await?.problem(404, 40401);
    }
    let made = api.create("/auth/evrythng/thngs", json!({"thngId": thng})).await?;
    let key = made["thngApiKey"].as_str().context("key")?;
    ensure!(api.get(&uri).await?.json() == made);
    for method in [Method::GET, Method::DELETE] {
        api.call_as(&api.other_key, method, &uri, None).await?.problem(404, 40401);
    }
    ensure!(api.call_as(key, Method::GET, "/access", None).await?.status == 200);
    let answer = api.delete(&uri).await?;
    ensure!(answer.status == 200 && answer.bytes.is_empty(), "{answer:?}");
    api.call_as(key, Method::GET, "/access", None).await?.problem(401, 40102);
    api.get(&uri).await?.problem(404, 40401);
    let next = api.create("/auth/evrythng/thngs", json!({"thngId": thng})).await?;
    ensure!(next["thngApiKey"] != made["thngApiKey"] && api.get(&uri).await?.json() == next);
    Ok(())
}

/// The vendor's Java client reads the clock of the service.
async fn the_time_of_the_service_is_read(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let before = api.made.app.core.clock.now().0;
    let time = api.get("/time").await?.json();
    let after = api.made.app.core.clock.now().0;
    let timestamp = time["timestamp"].as_i64().context("timestamp")?;
    ensure!((before..=after).contains(&timestamp) && time["offset"] == 0, "{time}");
    let written = time["localTime"].as_str().context("localTime")?;
    ensure!(written.len() == 24 && written.ends_with('Z'), "{time}");
    let answer = api.call_as(&"C".repeat(80), Method::GET, "/time", None).await?;
    answer.problem(401, 40102);
    Ok(())
}

/// A client that changes the position of what it read sends the old latitude and longitude back beside it.
async fn a_position_wins_over_latitude_and_longitude(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let place = api.create("/places", json!({"name": "x", "latitude": 1, "longitude": 2})).await?;
    let mut read = place.clone();
    read["position"] = json!({"type": "Point", "coordinates": [8.5, 47.25]});
    let uri = format!("/places/{}", place["id"].as_str().context("id")?);
    let changed = api.put(&uri, read).await?.json();
    ensure!(changed["latitude"] == 47.25 && changed["longitude"] == 8.5, "{changed}");
    ensure!(changed["position"]["coordinates"] == json!([8.5, 47.25]), "{changed}");
    Ok(())
}

/// A client reads the scan that it recorded and sends it as it is, with the place, the time and the fields of its
/// location; what differs from the record is refused as before.
async fn an_action_is_assessed_as_it_was_recorded(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id_of = |made: &Value| made["id"].as_str().map(str::to_owned).context("id");
    let thng = id_of(&api.create("/thngs", json!({"name": "t"})).await?)?;
    let place = id_of(&api.create("/places", json!({"name": "shop", "latitude": 1, "longitude": 2})).await?)?;
    for (location, source) in [
        (json!({"place": place}), Some("place")),
        (json!({"place": place, "latitude": 1.5, "longitude": 2}), None),
        (json!({"latitude": 1.5, "longitude": 2, "timestamp": 1_700_000_000_000_i64}), Some("sensor")),
        (json!({"latitude": 1, "longitude": 2, "customFields": {"shelf": 3}}), Some("sensor")),
    ] {
        let mut scan = json!({"thng": thng, "location": location});
        if let Some(source) = source {
            scan["locationSource"] = json!(source);
        }
        let id = id_of(&api.create("/actions/scans", scan.clone()).await?)?;
        let recorded = api.get(&format!("/actions/scans/{id}")).await?.json();
        let answer = api.post("/authentication", recorded.clone()).await?;
        ensure!(answer.status == 200, "{scan}: {recorded}: {answer:?}");
        ensure!(answer.json()["type"] == "authenticationResults", "{answer:?}");
        let before = api.fingerprint().await?;
        let mut other = recorded;
        other["location"]["place"] = json!(thng);
        let faults = api.post("/authentication", other).await?.problem(400, 40001);
        ensure!(faults.iter().any(|fault| fault.contains("location.place is not a member")), "{faults:?}");
        assert_eq!(before, api.fingerprint().await?);
    }
    Ok(())
}

crate::on_both_engines!(
    the_time_of_the_service_is_read,
    an_action_is_assessed_as_it_was_recorded,
    doubly_encoded_filters_find_the_same_rows,
    the_first_generation_gets_json_of_its_redirections,
    unknown_parameters_on_delete_are_refused,
    an_anonymous_user_needs_no_body,
    the_java_client_gets_the_statuses_it_requires,
    a_post_to_collections_equals_a_put,
    the_key_of_a_thng_is_read_and_revoked,
    a_position_wins_over_latitude_and_longitude,
);
