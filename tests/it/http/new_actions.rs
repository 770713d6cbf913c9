//! Creating actions: paths, targets, context, and permissions.

mod keys;

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, product::PHONE};

use super::Api;

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

fn id(body: &Value) -> String {
    body["id"].as_str().unwrap_or_default().to_owned()
}

/// A product, a Thng of it, and a Thng without a product.
async fn things(api: &Api) -> Result<(String, String, String)> {
    let product = id(&api
        .create("/products", json!({"name": "p", "identifiers": {"gs1:01": "00000000000017"}}))
        .await?);
    let body = json!({"name": "t", "product": product, "identifiers": {"gs1:21": "A", "both": "x"}});
    let thng = id(&api.create("/thngs", body).await?);
    let loose = id(&api.create("/thngs", json!({"name": "l", "identifiers": {"both": "x"}})).await?);
    Ok((product, thng, loose))
}

pub(super) async fn each_path_creates_actions(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (product, thng, loose) = things(&api).await?;
    api.create("/actions", json!({"name": "_own.1"})).await?;
    let both = (Some(thng.as_str()), Some(product.as_str()));
    let collection = api.create("/collections", json!({"name": "c", "identifiers": {"lot": "7"}})).await?;
    let collection = id(&collection);
    for (uri, body, kind, (of_thng, of_product)) in [
        ("/actions/scans".to_owned(), json!({"thng": thng}), "scans", both),
        ("/actions/scans".to_owned(), json!({"thng": "gs1:21:A", "type": "shares"}), "scans", both),
        (
            "/actions/scans".to_owned(),
            json!({"thng": thng, "product": "gs1:01:00000000000017"}),
            "scans",
            both,
        ),
        ("/actions/_own.1".to_owned(), json!({"product": product}), "_own.1", (None, both.1)),
        (
            "/actions/all".to_owned(),
            json!({"type": "checkins", "thng": loose}),
            "checkins",
            (Some(&loose), None),
        ),
        (
            "/actions/scans".to_owned(),
            json!({"thng": loose, "product": product}),
            "scans",
            (Some(&loose), both.1),
        ),
        ("/actions/scans".to_owned(), json!({"identifiers": {"gs1:21": "A"}}), "scans", both),
        (
            "/actions/scans".to_owned(),
            json!({"identifiers": {"gs1:21": "A", "gs1:01": "00000000000017"}}),
            "scans",
            both,
        ),
        (
            "/actions/scans".to_owned(),
            json!({"identifiers": {"gs1:01": "00000000000017", "none": "x"}}),
            "scans",
            (None, both.1),
        ),
        ("/actions/encodings".to_owned(), json!({}), "encodings", (None, None)),
        (format!("/thngs/{thng}/actions/scans"), json!({}), "scans", both),
        ("/actions/scans".to_owned(), json!({"collection": collection, "thng": thng}), "scans", both),
        ("/actions/scans".to_owned(), json!({"collection": "lot:7"}), "scans", (None, None)),
        (format!("/collections/{collection}/actions/scans"), json!({}), "scans", (None, None)),
        ("/thngs/gs1:21:A/actions/scans".to_owned(), json!({"thng": loose}), "scans", both),
        (format!("/products/{product}/actions/all"), json!({"type": "_own.1"}), "_own.1", (None, both.1)),
    ] {
        let answer = api.post(&format!("/v2{uri}"), body.clone()).await?;
        let made = answer.json();
        assert_eq!(answer.status, 201, "{uri} {body}: {made}");
        let location = format!("http://api.example:8080/v2{uri}/{}", id(&made));
        assert_eq!(answer.header("location"), Some(location.as_str()), "{uri}");
        assert_eq!(made["type"], kind, "{uri} {body}");
        assert_eq!((made["thng"].as_str(), made["product"].as_str()), (of_thng, of_product), "{uri} {body}");
        assert_eq!(made["timestamp"], made["createdAt"], "{uri}");
        assert_eq!(made["reactions"], json!([]), "{uri}");
        assert_eq!(made.get("scopes"), None, "{uri}");
        let of_collection = made.get("collection").and_then(Value::as_str);
        assert_eq!(of_collection, body_or_path(&uri, &body, &collection), "{uri} {body}");
        let read = api.get(&format!("{uri}/{}?context=true", id(&made))).await?.json();
        assert_eq!(read, made, "{uri}");
        let listed = api.get(&uri).await?.json();
        assert_eq!(listed.as_array().map(|all| all.iter().map(id).collect()), Some(vec![id(&made)]), "{uri}");
        api.delete(&format!("{uri}/{}", id(&made))).await?;
        api.get(&format!("{uri}/{}", id(&made))).await?.problem(404, 40401);
    }
    let sent = json!({"thng": thng, "timestamp": 7, "tags": ["a"], "customFields": {"Key": [1]},
        "identifiers": {"Other": "y"}, "context": {"city": "Forged"}, "user": UNKNOWN, "createdByApp": UNKNOWN,
        "reactions": [1], "id": UNKNOWN, "createdAt": 1});
    let made = api.create("/actions/scans", sent.clone()).await?;
    for name in ["timestamp", "tags", "customFields", "identifiers"] {
        assert_eq!(made[name], sent[name], "{name}");
    }
    assert_ne!((made["id"].as_str(), made["createdAt"].as_i64()), (Some(UNKNOWN), Some(1)));
    assert_eq!((made.get("user"), made.get("createdByApp"), made["context"].get("city")), (None, None, None));
    Ok(())
}

/// The collection that an action is about, by body or path.
fn body_or_path<'a>(uri: &str, body: &Value, collection: &'a str) -> Option<&'a str> {
    (uri.contains("/collections/") || body.get("collection").is_some()).then_some(collection)
}

pub(super) async fn an_array_is_created_completely_or_not_at_all(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (_, thng, loose) = things(&api).await?;
    let body =
        json!([{"thng": thng, "tags": ["0"]}, {"thng": loose, "tags": ["1"]}, {"thng": thng, "tags": ["2"]}]);
    let answer = api.post("/actions/scans", body).await?;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (201, None));
    let made = answer.json();
    let made = made.as_array().context("array")?;
    let tags: Vec<&Value> = made.iter().map(|action| &action["tags"][0]).collect();
    assert_eq!(tags, ["0", "1", "2"]);
    let listed = api.get("/actions/scans?sortOrder=ASCENDING").await?.json();
    assert_eq!(
        listed.as_array().map(|all| all.iter().map(id).collect()),
        Some(made.iter().map(id).collect::<Vec<_>>())
    );
    let one = api.create(&format!("/thngs/{thng}/actions/all"), json!([{"type": "shares"}])).await?;
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    let many = api.create("/actions/scans", json!(vec![json!({"thng": thng}); 1_000])).await?;
    assert_eq!(many.as_array().map(Vec::len), Some(1_000));

    let before = api.fingerprint().await?;
    let wrong =
        json!([{"thng": thng}, {"thng": UNKNOWN}, {"type": "none", "thng": thng}, {"product": UNKNOWN}]);
    let errors = api.post("/actions/scans", wrong).await?.problem(400, 40001);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("[1].thng: ") && errors[1].starts_with("[3].product: "), "{errors:?}");
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

pub(super) async fn invalid_requests_create_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (product, thng, _) = things(&api).await?;
    let other =
        api.create("/products", json!({"name": "q", "identifiers": {"gs1:01": "00000000000024"}})).await?;
    let (foreign_product, foreign) = api.others().await?;
    let place =
        api.call_as(&api.other_key, Method::POST, "/places", Some(json!({"name": "x"}))).await?.json();
    let before = api.fingerprint().await?;
    let scans = "/actions/scans".to_owned();
    for (uri, body, status, code, fault) in [
        ("/actions/none".to_owned(), json!({}), 404, 40401, "The action type none"),
        ("/actions/_none".to_owned(), json!({}), 404, 40401, "The action type _none"),
        ("/actions/%00".to_owned(), json!({}), 404, 40401, "The action type"),
        ("/actions/all".to_owned(), json!({}), 400, 40001, "type is required"),
        ("/actions/all".to_owned(), json!({"type": "_none"}), 400, 40001, "type: there is no type _none"),
        ("/actions/all".to_owned(), json!({"type": "_\u{0}"}), 400, 40001, "type: there is no type"),
        ("/actions/all".to_owned(), json!({"type": "all"}), 400, 40001, "type: there is no type"),
        ("/actions/commissions".to_owned(), json!({"thng": thng}), 400, 40001, "their own operations"),
        ("/actions/all".to_owned(), json!({"type": "decommissions"}), 400, 40001, "their own operations"),
        (
            format!("/thngs/{thng}/actions/authenticationResults"),
            json!({}),
            400,
            40001,
            "their own operations",
        ),
        (format!("/thngs/{UNKNOWN}/actions/scans"), json!({}), 404, 40401, "thng"),
        (format!("/thngs/{foreign}/actions/scans"), json!({}), 404, 40401, "thng"),
        (format!("/products/{foreign_product}/actions/scans"), json!({}), 404, 40401, "product"),
        ("/thngs/both:x/actions/scans".to_owned(), json!({}), 409, 40901, "belongs to 2 thngs"),
        (scans.clone(), json!({"thng": foreign}), 400, 40001, "thng: The thng"),
        (scans.clone(), json!({"thng": "gs1:21:none"}), 400, 40001, "thng: The thng"),
        (scans.clone(), json!({"thng": "both:x"}), 409, 40901, "belongs to 2 thngs"),
        (scans.clone(), json!({"product": foreign_product}), 400, 40001, "product: The product"),
        (scans.clone(), json!({"thng": thng, "product": other["id"]}), 400, 40001, "product: the thng is"),
        (scans.clone(), json!({"collection": UNKNOWN}), 400, 40001, "collection: The collection"),
        (format!("/collections/{UNKNOWN}/actions/scans"), json!({}), 404, 40401, "collection"),
        (scans.clone(), json!({"identifiers": {"gs1:21": "none"}}), 400, 40001, "identifiers"),
        (scans.clone(), json!({"identifiers": {"both": "x"}}), 409, 40901, "belongs to 2 thngs"),
        (
            scans.clone(),
            json!({"identifiers": {"gs1:21": "A", "gs1:01": "00000000000024"}}),
            400,
            40001,
            "product: the thng",
        ),
        (scans.clone(), json!({"thng": thng, "location": {"place": UNKNOWN}}), 400, 40001, "location.place"),
        (scans.clone(), json!({"location": {"place": place["id"]}}), 400, 40001, "location.place"),
        (
            scans.clone(),
            json!({"location": {"latitude": 91, "longitude": 0}}),
            400,
            40001,
            "location.latitude",
        ),
        (scans.clone(), json!({"timestamp": "now"}), 400, 40001, "timestamp"),
        (scans.clone(), json!([]), 400, 40001, "1 to 1000"),
        (scans.clone(), json!([{}, 1]), 400, 40001, "[1] must be an object"),
        (format!("{scans}?project={UNKNOWN}"), json!({"product": product}), 400, 40003, "project"),
        (format!("{scans}?project=x"), json!({"product": product}), 400, 40003, "project"),
    ] {
        let answer = api.post(&uri, body.clone()).await?;
        assert_eq!(answer.status.as_u16(), status, "{uri} {body}: {:?}", answer.json());
        let errors = answer.problem(status, code);
        assert!(errors.iter().any(|error| error.contains(fault)), "{uri} {body}: {errors:?}");
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

/// Sends an action from a peer with headers.
async fn act(api: &Api, peer: &str, headers: &[(&str, &str)], body: Value) -> Result<Value> {
    let request = (&*api.key, Method::POST, "/actions/scans");
    Ok(api.call_from(peer, headers, request, Some(body)).await?.must_be(201)?.json())
}

pub(super) async fn the_context_comes_from_the_request(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let full = act(
        &api,
        "203.0.113.9",
        &[
            ("user-agent", PHONE),
            ("referer", "https://shop.example/?access_token=K&a=1"),
            ("accept-language", "de-CH,de;q=0.9"),
        ],
        json!({"context": {"ipAddress": "6.6.6.6", "language": "fr"}, "locationSource": "sensor"}),
    )
    .await?;
    let expected = json!({"ipAddress": "203.0.113.9", "city": "Bern", "region": "Bern", "countryCode": "CH",
        "timeZone": "Europe/Zurich", "userAgent": PHONE, "userAgentName": "Safari",
        "operatingSystemName": "iPhone", "referer": "https://shop.example/?a=1", "language": "de-CH"});
    assert_eq!(full["context"], expected);
    assert_eq!(full["locationSource"], "geoIp");
    let point = json!({"latitude": 46.5, "longitude": 7.5,
        "position": {"type": "Point", "coordinates": [7.5, 46.5]}});
    assert_eq!(full["location"], point);
    let listed = api.get("/actions/all?context=true").await?.json();
    assert_eq!(listed[0]["context"], expected);

    // Who may name the client: proxies that are configured, and edges that show their token.
    for (peer, headers, ip) in [
        ("198.51.100.1", vec![("x-forwarded-for", "203.0.113.7")], "198.51.100.1"),
        ("192.0.2.1", vec![("x-forwarded-for", "6.6.6.6, 203.0.113.7")], "203.0.113.7"),
        ("192.0.2.1", vec![("forwarded", "for=203.0.113.8")], "192.0.2.1"),
        (
            "198.51.100.1",
            vec![("x-waymark-edge", "edge-token"), ("x-forwarded-for", "203.0.113.7")],
            "203.0.113.7",
        ),
        (
            "198.51.100.1",
            vec![("x-waymark-edge", "edge-tokeN"), ("x-forwarded-for", "203.0.113.7")],
            "198.51.100.1",
        ),
    ] {
        let action = act(&api, peer, &headers, json!({})).await?;
        assert_eq!(action["context"]["ipAddress"], ip, "{peer} {headers:?}");
        let source = if ip.starts_with("203.") { "geoIp" } else { "unknown" };
        assert_eq!(action["locationSource"], source, "{peer} {headers:?}");
        assert_eq!(action.get("location").is_some(), source == "geoIp", "{peer} {headers:?}");
    }

    let place = json!({"name": "here", "latitude": 1.5, "longitude": 2.5});
    let place = id(&api.create("/places", place).await?);
    let nowhere = id(&api.create("/places", json!({"name": "nowhere"})).await?);
    let sensor =
        json!({"latitude": 3.0, "longitude": 4.0, "position": {"type": "Point", "coordinates": [4.0, 3.0]}});
    let mut at_place =
        json!({"latitude": 1.5, "longitude": 2.5, "position": {"type": "Point", "coordinates": [2.5, 1.5]}});
    at_place["place"] = json!(place);
    for (location, source, expected) in [
        (json!({"latitude": 3, "longitude": 4}), "sensor", sensor),
        (json!({"place": place}), "place", at_place),
        (json!({"place": nowhere}), "place", json!({"place": nowhere})),
    ] {
        let action = act(&api, "203.0.113.9", &[], json!({"location": location})).await?;
        assert_eq!(action["locationSource"], source, "{location}");
        assert_eq!(action["location"], expected, "{location}");
        assert_eq!(action["context"]["countryCode"], "CH", "{location}");
    }
    Ok(())
}

crate::on_both_engines!(
    each_path_creates_actions,
    an_array_is_created_completely_or_not_at_all,
    invalid_requests_create_nothing,
    the_context_comes_from_the_request,
);
