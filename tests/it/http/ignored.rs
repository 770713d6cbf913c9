//! Unknown members and parameters: named in `X-Ignored`, or refused if the client asks for that.

use anyhow::{Context, Result};
use axum::{
    body::Body,
    http::{Method, Request},
};
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Answer, Api};

const SOME_ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

impl Api {
    /// As [`Api::call`], with a preference.
    async fn prefer(&self, prefer: &str, method: Method, uri: &str, body: Option<&Value>) -> Result<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "api.example:8080")
            .header("authorization", self.key_for(uri))
            .header("accept", "application/json")
            .header("content-type", "application/json")
            .header("prefer", prefer)
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))?;
        self.send(request).await
    }
}

async fn unknown_members_and_parameters_are_named_or_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let location = |more: Value| {
        let mut location = json!({"position": {"type": "Point", "coordinates": [1, 2]}});
        location.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        location
    };
    let known = [json!({}), json!({}), json!({"timestamp": 1})];
    let mut actions: Vec<Value> = known.iter().map(|_| json!({"location": location(json!({}))})).collect();
    actions.push(
        json!({"location": location(json!({"planet": "Earth", "latitude": 2, "longitude": 1})), "foo": 1}),
    );
    for (path, body, ignored) in [
        ("/thngs", json!({"name": "x"}), None),
        ("/thngs?perpage=3&perpage=4", json!({"name": "x", "nam": 1}), Some("perpage, nam")),
        // Read-only members are ignored, and known.
        ("/thngs", json!({"name": "x", "id": SOME_ID, "createdAt": 1, "updatedAt": 2}), None),
        ("/thngs", json!({"name": "x", "customFields": {"a": {"b": 1}}, "properties": {"temp": 1}}), None),
        ("/thngs", json!({"name": "x", "scopes": {"users": [], "groups": []}}), Some("scopes.groups")),
        ("/places", json!({"name": "x", "address": {"planet": 1}, "latitude": 1, "longitude": 2}), None),
        (
            "/places",
            json!({"name": "x", "position": {"type": "Point", "coordinates": [1, 2], "crs": null}}),
            Some("position.crs"),
        ),
        ("/actions/scans", json!(actions), Some("[3].foo, [3].location.planet")),
        ("/thngs", json!({"name": "x", "a,b\r\nc": 1, "é": 2}), Some("a%2Cb%0D%0Ac, %C3%A9")),
    ] {
        let answer = api.post(path, body.clone()).await?;
        assert_eq!(answer.status, 201, "{path} {body}: {answer:?}");
        let mut found: Vec<&str> = answer.header("x-ignored").unwrap_or_default().split(", ").collect();
        let mut expected: Vec<&str> = ignored.unwrap_or_default().split(", ").collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{path} {body}");

        let before = api.fingerprint().await?;
        let answer = api.prefer("handling=strict", Method::POST, path, Some(&body)).await?;
        assert_eq!(answer.header("preference-applied"), Some("handling=strict"), "{path} {body}");
        if ignored.is_none() {
            assert_eq!(answer.status, 201, "{path} {body}: {answer:?}");
            continue;
        }
        let errors = if path.contains('?') { answer.problem(400, 40003) } else { answer.problem(400, 40001) };
        assert!(errors.iter().all(|error| expected.iter().any(|name| error.starts_with(name))), "{errors:?}");
        assert_eq!(before, api.fingerprint().await?, "{path} {body}");
    }
    // At most 20 names, and how many more.
    let many: serde_json::Map<String, Value> = (0..27).map(|n| (format!("foo{n:02}"), json!(n))).collect();
    let mut body = json!({"name": "x"});
    body.as_object_mut().context("object")?.extend(many);
    let answer = api.post("/thngs", body).await?;
    let header = answer.header("x-ignored").context("x-ignored")?;
    assert!(header.ends_with("foo19, ...+7"), "{header}");
    // What the platform API closes stays 400, whatever the client prefers.
    let mut step = json!({"location": location(json!({"planet": 1})), "occurredAt": "2026-11-22T08:15:30Z"});
    step["product"] = json!(SOME_ID);
    let path = format!("/thngs/{SOME_ID}/actions/commissions");
    let errors = api.prefer("handling=lenient", Method::POST, &path, Some(&step)).await?.problem(400, 40001);
    assert!(errors.iter().any(|error| error.contains("location.planet")), "{errors:?}");
    // A kept answer says it again.
    for _ in 0..2 {
        let request = Request::post("/thngs")
            .header("authorization", &api.key)
            .header("content-type", "application/json")
            .header("idempotency-key", "once")
            .body(Body::from(json!({"name": "x", "foo": 1}).to_string()))?;
        let answer = api.send(request).await?;
        assert_eq!((answer.status.as_u16(), answer.header("x-ignored")), (201, Some("foo")));
    }
    Ok(())
}

/// Every operation: method, path with ids, and the operation itself.
fn operations(document: &Value) -> Vec<(Method, String, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let mut uri = path.replace("{type}", "scans").replace("{key}", "temp");
            while let (Some(start), Some(end)) = (uri.find('{'), uri.find('}')) {
                uri.replace_range(start..=end, SOME_ID);
            }
            found.push((method.to_ascii_uppercase().parse().unwrap(), uri, operation));
        }
    }
    found
}

async fn unknown_members_and_parameters_are_reported_by_every_operation(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let document = control::http::document();
    let mut wrong = Vec::new();
    for (method, uri, operation) in operations(&document) {
        let with = format!("{uri}?zzUnknown=1");
        let answer = api.prefer("handling=strict", method.clone(), &with, None).await?;
        let is_named = String::from_utf8_lossy(&answer.bytes).contains("zzUnknown");
        if answer.status != 400 || !is_named || answer.header("x-ignored") != Some("zzUnknown") {
            wrong.push(format!("{method} {with}: {} {:?}", answer.status, answer.header("x-ignored")));
        }
        let content = &operation["requestBody"]["content"]["application/json"];
        let Some(mut body) = content.get("example").cloned() else { continue };
        let (target, path) = match &mut body {
            Value::Array(items) => (items.first_mut(), "[0].zzUnknown"),
            other => (Some(other), "zzUnknown"),
        };
        // Ids alone have no members.
        let Some(members) = target.and_then(Value::as_object_mut) else { continue };
        members.insert("zzUnknown".to_owned(), json!(1));
        let answer = api.prefer("handling=strict", method.clone(), &uri, Some(&body)).await?;
        let is_named = String::from_utf8_lossy(&answer.bytes).contains(path);
        // Where unknown members are always refused, none is ignored.
        let refuses = |schema: &Value| schema["additionalProperties"] == false;
        let forms = content["schema"]["anyOf"].as_array();
        let is_closed = refuses(&content["schema"]) || forms.is_some_and(|forms| forms.iter().all(refuses));
        let ignored = Some(path).filter(|_| !is_closed);
        if answer.status != 400 || !is_named || answer.header("x-ignored") != ignored {
            wrong.push(format!("{method} {uri} {body}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// A body that an operation does not declare has no effect and is named; it is refused on DELETE, where it may be
/// meant to select, and wherever the client asks for that.
async fn undeclared_bodies_are_reported_by_every_operation(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let document = control::http::document();
    let mut wrong = Vec::new();
    let mut count = 0;
    let before = without_audit(&api).await?;
    for (method, uri, operation) in operations(&document) {
        if operation.get("requestBody").is_some() {
            continue;
        }
        count += 1;
        for prefer in ["return=minimal", "handling=strict"] {
            let is_refused = prefer == "handling=strict" || method == Method::DELETE;
            // Without strict handling a POST takes effect: the other tests make such requests.
            if !is_refused && method == Method::POST {
                continue;
            }
            let answer = api.prefer(prefer, method.clone(), &uri, Some(&json!({"zzUnknown": 1}))).await?;
            let errors = serde_json::from_slice::<Value>(&answer.bytes).unwrap_or_default()["errors"].clone();
            let is_said = errors == json!(["zzUnknown is not a member of this operation."]);
            if (is_said && answer.status == 400) != is_refused
                || answer.header("x-ignored") != Some("zzUnknown")
            {
                wrong.push(format!("{prefer} {method} {uri}: {answer:?}"));
            }
            let list = api.prefer(prefer, method.clone(), &uri, Some(&json!([1]))).await?;
            let is_said = String::from_utf8_lossy(&list.bytes).contains("takes no body");
            if (is_said && list.status == 400) != is_refused {
                wrong.push(format!("{prefer} {method} {uri}: {list:?}"));
            }
            if !is_refused {
                let plain = api.prefer(prefer, method.clone(), &uri, None).await?;
                if (answer.status, list.status) != (plain.status, plain.status) {
                    wrong.push(format!("{method} {uri}: {answer:?} {list:?}, without a body {plain:?}"));
                }
            }
        }
    }
    assert!(count > 60, "{count} operations without a body");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(before, without_audit(&api).await?);

    // What clients send always.
    for text in ["{}", "null", " \r\n", "[]", "\"\""] {
        let made = api.create("/thngs", json!({"name": "x"})).await?;
        let uri = format!("/thngs/{}", made["id"].as_str().context("id")?);
        for method in [Method::GET, Method::DELETE] {
            let request = Request::builder()
                .method(&method)
                .uri(&uri)
                .header("authorization", &api.key)
                .header("content-type", "application/json")
                .body(Body::from(text))?;
            let answer = api.send(request).await?;
            assert_eq!(answer.status, 200, "{method} {text:?}: {answer:?}");
        }
    }
    // A form is no JSON, and says something all the same.
    let request = Request::delete(format!("/thngs/{SOME_ID}"))
        .header("authorization", &api.key)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("from=1"))?;
    let errors = api.send(request).await?.problem(400, 40001);
    assert_eq!(errors, ["This operation takes no body."]);
    // Blanks beyond what any body may have are no body that says nothing.
    let request = Request::delete(format!("/thngs/{SOME_ID}"))
        .header("authorization", &api.key)
        .body(Body::from(vec![b' '; 9 << 20]))?;
    api.send(request).await?.problem(413, 41301);
    Ok(())
}

/// What is stored, but for the audit trail: it notes exports.
async fn without_audit(api: &Api) -> Result<std::collections::BTreeMap<String, Vec<String>>> {
    let mut tables = api.fingerprint().await?;
    tables.remove("audit_entries");
    // The number of its last row.
    tables.remove("sqlite_sequence");
    Ok(tables)
}

async fn every_declared_member_is_read(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (thng, product) = (
        api.create("/thngs", json!({"name": "x"})).await?,
        api.create("/products", json!({"name": "x"})).await?,
    );
    let document = control::http::document();
    let mut wrong = Vec::new();
    for (method, uri, operation) in operations(&document) {
        let content = &operation["requestBody"]["content"]["application/json"];
        let schema = &content["schema"];
        let example = &content["example"];
        let kind = uri.split('/').nth(1).unwrap_or_default().to_owned();
        let is_bulk = uri.matches('/').count() == 1 || uri.ends_with("/applications");
        let uri = match kind.as_str() {
            // A bulk change names what it changes in the query.
            kind if method == Method::PUT && is_bulk && kind != "redirections" => {
                format!("{uri}?ids={SOME_ID}")
            }
            "thngs" => uri.replace(SOME_ID, thng["id"].as_str().context("id")?),
            "products" => uri.replace(SOME_ID, product["id"].as_str().context("id")?),
            "redirections" if method == Method::PUT => format!("{uri}?ids=ABC"),
            _ => uri,
        };
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let text = member.to_string();
            // Anything is right, or nothing is.
            if member["$ref"].is_string() || member["type"] == "null" {
                continue;
            }
            let mut body = example.clone();
            let takes_list = text.contains("\"array\"");
            body[name] = if takes_list { json!(true) } else { json!([[true]]) };
            let answer = api.call_as(api.key_for(&uri), method.clone(), &uri, Some(body)).await?;
            let said = String::from_utf8_lossy(&answer.bytes).into_owned();
            if answer.status != 400 || !said.contains(name.as_str()) {
                wrong.push(format!("{method} {uri} {name}: {} {said}", answer.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

crate::on_both_engines!(
    unknown_members_and_parameters_are_named_or_refused,
    unknown_members_and_parameters_are_reported_by_every_operation,
    undeclared_bodies_are_reported_by_every_operation,
    every_declared_member_is_read,
);
