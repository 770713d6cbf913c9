//! Keys of operators: made, shown once, listed, changed, rotated, revoked; and who may do what with them.

mod lifetimes;
mod limits;

use anyhow::{Context, Result, ensure};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use kernel::domain::access::hash_key;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Answer, Api};

/// A new key, and its id.
struct Made {
    id: String,
    key: String,
}

impl Made {
    fn new(body: &Value) -> Result<Self> {
        let text =
            |member: &str| anyhow::Ok(body[member].as_str().with_context(|| format!("{body}"))?.to_owned());
        Ok(Self { id: text("id")?, key: text("apiKey")? })
    }

    fn path(&self) -> String {
        format!("/keys/{}", self.id)
    }
}

async fn make(api: &Api, body: Value) -> Result<Made> {
    Made::new(&api.create("/keys", body).await?)
}

/// What `/access` answers to a key: the status and the code of an error.
async fn access(api: &Api, key: &str) -> Result<(u16, u64)> {
    let answer = api.call_as(key, Method::GET, "/access", None).await?;
    Ok((answer.status.as_u16(), answer.json()["code"].as_u64().unwrap_or_default()))
}

/// Sends a request from an address.
async fn call_from(
    api: &Api,
    peer: &str,
    request: (&str, Method, &str),
    body: Option<Value>,
    forwarded: Option<&str>,
) -> Result<Answer> {
    let headers: Vec<_> = forwarded.map(|forwarded| ("x-forwarded-for", forwarded)).into_iter().collect();
    api.call_from(peer, &headers, request, body).await
}

/// Lets so much time pass: each look at the clock of a test is a millisecond.
fn pass(api: &Api, milliseconds: i64) {
    for _ in 0..milliseconds {
        api.made.app.core.clock.now();
    }
}

/// Whether the database holds a text anywhere.
async fn holds(api: &Api, text: &str) -> Result<bool> {
    Ok(format!("{:?}", api.fingerprint().await?).contains(text))
}

pub(super) async fn a_key_is_shown_once(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let body = json!({"label": "Linie 3 ü", "networks": ["10.1.2.3/8", "2001:db8::1"], "expiresAt": 9_000_000_000_000_i64});
    let answer = api.post("/v2/keys", body).await?;
    ensure!(answer.status == 201 && answer.header("cache-control") == Some("no-store"), "{answer:?}");
    let mut shown = answer.json();
    let made = Made::new(&shown)?;
    let location = format!("http://api.example:8080/v2{}", made.path());
    assert_eq!(answer.header("location"), Some(location.as_str()));
    ensure!(made.key.starts_with("wmop") && kernel::domain::access::is_key(&made.key), "{shown}");
    // Whoever finds a key can say which one it is: printf %s KEY | sha256sum
    let hash: String = hash_key(&made.key).iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(made.id, hash[..24]);
    let operator = api.made.operator.to_string();
    let now = shown["createdAt"].clone();
    shown.as_object_mut().context("object")?.remove("apiKey");
    let expected = json!({"id": made.id, "label": "Linie 3 ü", "status": "active", "operator": operator,
        "networks": ["10.0.0.0/8", "2001:db8::1/128"], "createdBy": operator, "createdAt": now, "updatedAt": now,
        "expiresAt": 9_000_000_000_000_i64});
    assert_eq!(shown, expected);
    assert_eq!(api.get(&made.path()).await?.json(), expected, "without the key");
    let listed = api.get("/keys").await?.json();
    assert_eq!(listed[0], expected);
    // The key of the fixture is as one that an older release made.
    assert_eq!((&listed[1]["label"], &listed[1]["createdBy"]), (&json!("without a label"), &Value::Null));
    ensure!(!holds(&api, &made.key).await?, "only the hash is stored");
    ensure!(!listed.to_string().contains(&made.key[4..]));

    // It acts for its operator, whatever it is called.
    let free = make(&api, json!({"label": "free"})).await?;
    let whose = api.call_as(&free.key, Method::GET, "/access", None).await?.json();
    assert_eq!(whose["actor"], json!({"type": "operator", "id": operator}));
    let answer = api.put(&free.path(), json!({"label": "renamed"})).await?;
    let changed = answer.json();
    ensure!(changed["label"] == "renamed" && changed.get("apiKey").is_none(), "{answer:?}");
    ensure!(changed["updatedAt"].as_i64() > changed["createdAt"].as_i64(), "{changed}");
    let after = api.put(&made.path(), json!({"expiresAt": 0, "networks": []})).await?.json();
    ensure!(after.get("expiresAt").is_none() && after.get("networks").is_none(), "{after}");
    assert_eq!(access(&api, &made.key).await?, (200, 0), "from everywhere now");
    Ok(())
}

/// A repeat gets the same key, and what is kept of the answer cannot be read without the key of its caller.
pub(super) async fn an_answer_with_a_key_is_kept_sealed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let post = async || {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/keys")
            .header(header::HOST, "api.example:8080")
            .header(header::AUTHORIZATION, &api.key)
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", "once");
        api.send(request.body(Body::from(r#"{"label": "once"}"#))?).await
    };
    let (first, again) = (post().await?, post().await?);
    assert_eq!((first.status.as_u16(), &first.bytes), (201, &again.bytes));
    assert_eq!(again.header("cache-control"), Some("no-store"));
    let made = Made::new(&first.json())?;
    ensure!(!holds(&api, &made.key).await?);
    assert_eq!(api.get("/keys").await?.json().as_array().map(Vec::len), Some(2), "one was made");
    Ok(())
}

pub(super) async fn bad_bodies_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let made = make(&api, json!({"label": "one"})).await?;
    let rotate = format!("{}/rotate", made.path());
    let before = api.fingerprint().await?;
    let many: Vec<String> = (0..101).map(|n| format!("10.0.{n}.0/24")).collect();
    let (keys, one) = ("/keys", made.path());
    for (method, uri, body, expected) in [
        (Method::POST, keys, json!({}), "label is required."),
        (Method::POST, keys, json!({"label": ""}), "label must not be empty."),
        (Method::POST, keys, json!({"label": "x".repeat(257)}), "label must have at most 256"),
        (Method::POST, keys, json!({"label": 1}), "label must be a string."),
        (
            Method::POST,
            keys,
            json!({"label": "x", "networks": ["10.0.0.0/33"]}),
            "networks: \"10.0.0.0/33\" is neither",
        ),
        (
            Method::POST,
            keys,
            json!({"label": "x", "networks": ["example.com"]}),
            "networks: \"example.com\" is neither",
        ),
        (Method::POST, keys, json!({"label": "x", "networks": "10.0.0.0/8"}), "networks must be an array"),
        (Method::POST, keys, json!({"label": "x", "networks": many}), "networks must have at most 100"),
        (Method::POST, keys, json!({"label": "x", "expiresAt": 1}), "expiresAt must lie in the future"),
        (Method::POST, keys, json!({"label": "x", "expiresAt": "2030"}), "expiresAt must be an integer"),
        (Method::POST, keys, json!({"label": "x", "project": "UKXAGyEf8SQ5eTDmVgGpHqAa"}), "project: UKXAG"),
        (Method::POST, keys, json!({"label": "x", "project": "x"}), "project: x was not found"),
        (Method::POST, keys, json!([]), "The body must be a JSON object."),
        (Method::PUT, &one, json!({"expiresAt": 1_700_000_000_000_i64}), "expiresAt must lie in the future"),
        (Method::PUT, &one, json!({"networks": [""]}), "networks[0] must not be empty"),
        (
            Method::POST,
            &rotate,
            json!({"overlap": 30 * 86_400_000_i64 + 1}),
            "overlap must be a whole number of milliseconds from 0 to 2592000000.",
        ),
        (Method::POST, &rotate, json!({"overlap": -1}), "overlap must be a whole number of milliseconds"),
        (Method::POST, &rotate, json!({"overlap": 0.5}), "overlap must be a whole number of milliseconds"),
    ] {
        let faults = api.call(method, uri, Some(body)).await?.problem(400, 40001);
        ensure!(faults[0].starts_with(expected), "{uri}: {faults:?} instead of {expected}");
    }
    // Members that are not known, or only shown.
    let strict = async |method: Method, uri: &str, body: Value| {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::AUTHORIZATION, &api.key)
            .header(header::CONTENT_TYPE, "application/json")
            .header("prefer", "handling=strict");
        api.send(request.body(Body::from(body.to_string()))?).await
    };
    let faults = strict(Method::POST, "/keys", json!({"label": "x", "role": "x"})).await?.problem(400, 40001);
    assert_eq!(faults, ["role is not a member of this operation."]);
    let faults = strict(Method::POST, &rotate, json!({"overlapSeconds": 1})).await?.problem(400, 40001);
    assert_eq!(faults, ["overlapSeconds is not a member of this operation."]);
    assert_eq!(api.fingerprint().await?, before);
    let answer = api.put(&one, json!({"project": "x", "colour": 1, "id": "x"})).await?;
    ensure!(answer.status == 200 && answer.header("x-ignored") == Some("colour"), "{answer:?}");
    ensure!(answer.json().get("project").is_none(), "a key is not confined later");
    Ok(())
}

pub(super) async fn keys_are_listed_page_by_page(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut made = Vec::new();
    for n in 0..5 {
        made.push(make(&api, json!({"label": format!("{n}")})).await?.id);
    }
    api.call_as(&api.other_key, Method::POST, "/keys", Some(json!({"label": "theirs"}))).await?;
    for order in ["ASCENDING", "DESCENDING"] {
        let (mut uri, mut seen) = (format!("/keys?perPage=2&sortOrder={order}"), Vec::new());
        loop {
            let answer = api.get(&uri).await?;
            let page = answer.json();
            let page = page.as_array().context("array")?;
            seen.extend(page.iter().filter_map(|key| key["id"].as_str().map(str::to_owned)));
            let Some(link) = answer.header("link") else { break };
            assert_eq!(page.len(), 2);
            let link = link.split(['<', '>']).nth(1).context("link")?;
            let link = percent_encoding::percent_decode_str(link).decode_utf8()?.into_owned();
            uri = link.strip_prefix("http://api.example:8080").context("base")?.to_owned();
        }
        if order == "DESCENDING" {
            seen.reverse();
        }
        // The first is the fixture's.
        assert_eq!(seen[1..], made, "{order}");
    }
    api.get("/keys?perPage=0").await?.problem(400, 40003);
    api.get("/keys?nextPageToken=x").await?.problem(400, 40004);
    Ok(())
}

pub(super) async fn keys_of_others_do_not_exist(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let theirs = api.call_as(&api.other_key, Method::POST, "/keys", Some(json!({"label": "theirs"}))).await?;
    let theirs = Made::new(&theirs.json())?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?;
    let thng_key = api.create("/auth/evrythng/thngs", json!({"thngId": thng["id"]})).await?;
    let thng_key =
        Made { id: String::new(), key: thng_key["thngApiKey"].as_str().context("key")?.to_owned() };
    // The key of a Thng has an id too, and is no operator's.
    let of_thng: String = hash_key(&thng_key.key)[..12].iter().map(|byte| format!("{byte:02X}")).collect();
    for id in [theirs.id.as_str(), &of_thng, "UKXAGyEf8SQ5eTDmVgGpHqAa", "x", "0123456789ABCDEF01234567"] {
        let uri = format!("/keys/{id}");
        api.get(&uri).await?.problem(404, 40401);
        api.put(&uri, json!({"label": "x"})).await?.problem(404, 40401);
        api.delete(&uri).await?.problem(404, 40401);
        api.post(&format!("{uri}/rotate"), json!({})).await?.problem(404, 40401);
    }
    assert_eq!(access(&api, &theirs.key).await?, (200, 0));
    for (method, uri) in [(Method::GET, "/keys"), (Method::POST, "/keys")] {
        api.call_as(&thng_key.key, method, uri, Some(json!({"label": "x"}))).await?.problem(403, 40301);
    }
    Ok(())
}

crate::on_both_engines!(
    a_key_is_shown_once,
    an_answer_with_a_key_is_kept_sealed,
    bad_bodies_are_refused,
    keys_are_listed_page_by_page,
    keys_of_others_do_not_exist,
);
