//! Conventions of the whole running product: the prefix, the documents, the table of error codes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use shared::problem::Code;
use tests::{
    db::Engine,
    kills::{ended, until},
    product::{Options, Product},
};

/// Ids that fill the parts of paths, so that each path leads to something that is there.
struct Filled {
    product: Product,
    parts: BTreeMap<&'static str, String>,
    ids: BTreeMap<&'static str, String>,
}

impl Filled {
    async fn new(engine: Engine) -> Result<Self> {
        let product = Product::start(Options { engine, ..Options::default() }).await?;
        let product_id = product.create_product().await?;
        let body = json!({"name": "t", "product": product_id});
        let thng = product.must_answer(201, Method::POST, "/thngs", Some(body)).await?;
        let thng = thng["id"].as_str().context("id")?.to_owned();
        for (id, short_id) in [(&thng, "OF-THNG"), (&product_id, "OF-PRODUCT")] {
            product.create_redirection(id, "https://example.com/", Some(short_id)).await?;
        }
        let (status, _) = product.scan("OF-THNG").await?;
        ensure!(status == StatusCode::TEMPORARY_REDIRECT, "{status}");
        let scans = format!("/thngs/{thng}/actions/implicitScans");
        let actions = until(&product, &scans, |actions| *actions != json!([])).await?;
        let action = actions[0]["id"].as_str().context("id")?.to_owned();
        let (status, access) = product.call(Method::GET, "/access", None).await?;
        ensure!(status == StatusCode::OK, "{status}: {access}");
        let text = |value: &Value| value.as_str().map(str::to_owned).context("id");
        let create = async |path: &str, body: Value| -> Result<Value> {
            let (status, body) = product.call(Method::POST, path, Some(body)).await?;
            ensure!(status == StatusCode::CREATED, "{path}: {status}: {body}");
            Ok(body)
        };
        let mut others = Vec::new();
        for kind in ["projects", "places", "collections", "files", "batches"] {
            others.push((kind, text(&create(&format!("/{kind}"), json!({"name": kind})).await?["id"])?));
        }
        create("/auth/evrythng/thngs", json!({"thngId": thng})).await?;
        // A name that nothing has: a test event goes nowhere.
        let webhook = json!({"name": "w", "url": "https://webhooks.invalid/hook", "status": "disabled"});
        others.push(("webhooks", text(&create("/webhooks", webhook).await?["id"])?));
        let reaction = json!({"name": "r", "status": "disabled",
            "effect": {"type": "property", "key": "a", "value": 1}});
        others.push(("reactions", text(&create("/reactions", reaction).await?["id"])?));
        // It was never commissioned: that opens a case.
        let trigger = json!({"id": thng, "type": "scans", "locationSource": "unknown", "thng": thng});
        product.must_answer(200, Method::POST, "/authentication", Some(trigger)).await?;
        let cases = product.list("/authentication/cases").await?;
        others.push(("cases", text(&cases.first().context("no case")?["id"])?));
        let role = text(&create("/roles", json!({"name": "r"})).await?["id"])?;
        others.extend([("roles", role.clone()), ("accessPolicies", role)]);
        let accesses = format!("/accounts/{}/operatorAccess", text(&access["account"])?);
        let invited = create(&accesses, json!({"email": "c@example.com", "role": "viewer"})).await?;
        others.push(("keys", text(&product.list("/keys").await?.first().context("no key")?["id"])?));
        let project = others[0].1.clone();
        let applications = format!("/projects/{project}/applications");
        let application = create(&applications, json!({"name": "a", "socialNetworks": {}})).await?;
        others.push(("applications", text(&application["id"])?));
        let user = product.http.post(format!("{}/auth/evrythng/users?anonymous=true", product.api));
        let user = user.header(header::AUTHORIZATION, text(&application["appApiKey"])?).json(&json!({}));
        let user: Value = user.send().await?.error_for_status()?.json().await?;
        others.push(("users", text(&user["evrythngUser"])?));
        let batch = &others[4].1;
        let task = json!({"type": "POPULATING", "inputParameters": {"type": "FIXED_AMOUNT", "quantity": 1,
            "thngTemplate": {"name": "made"}}});
        let request = product.http.post(format!("{}/batches/{batch}/tasks", product.api));
        let answer = request.header(header::AUTHORIZATION, &product.key).json(&task).send().await?;
        let location = answer.headers().get(header::LOCATION).context("location")?.to_str()?;
        let task = location.rsplit('/').next().context("task")?.to_owned();
        let domains = format!("/accounts/{}/shortDomains", text(&access["account"])?);
        let domain = text(product.list(&domains).await?.first().context("short domain")?)?;
        let parts = [
            ("taskId", task),
            ("type", "implicitScans".to_owned()),
            ("shortId", "OF-THNG".to_owned()),
            ("project", project),
            ("key", "temp".to_owned()),
            ("name", "global_read".to_owned()),
            ("delivery", "UKXAGyEf8SQ5eTDmVgGpHqAa".to_owned()),
            ("report", "UKXAGyEf8SQ5eTDmVgGpHqAa".to_owned()),
            ("access", text(&invited["id"])?),
            ("identity", "9F86D081884C7D659A2FEAA0".to_owned()),
            ("thng", thng.clone()),
            ("host", "blocked.example".to_owned()),
            ("domain", domain),
            ("file", "manifest.csv".to_owned()),
        ];
        let job = json!({"payload": {"type": "scans"}, "target": "THNGS",
            "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": [thng]}});
        let request = product.http.post(format!("{}/jobs/actions", product.api));
        let answer = request.header(header::AUTHORIZATION, &product.key).json(&job).send().await?;
        let location = answer.headers().get(header::LOCATION).context("location")?.to_str()?.to_owned();
        let job = location.rsplit('/').next().context("job")?.to_owned();
        // What moves is not the same at two looks.
        ended(&product, &format!("/jobs/actions/{job}")).await?;
        let order = json!({"source": {"list": {"thngs": [thng]}}, "format": "zpl", "waitForEdges": "none"});
        let ordered = product.call(Method::POST, "/jobs/qr", Some(order)).await?;
        let order = text(&ordered.1["id"])?;
        ended(&product, &format!("/jobs/qr/{order}")).await?;
        let change = json!({"platformId": thng, "patch": {"title": "Changed"}});
        let asked = product.call(Method::POST, "/jobs/redirections", Some(change)).await?;
        let change = text(&asked.1["id"])?;
        ended(&product, &format!("/jobs/redirections/{change}")).await?;
        let user = text(&user["evrythngUser"])?;
        let asked = product.call(Method::POST, "/privacy/erasures", Some(json!({"user": user}))).await?;
        let erasure = text(&asked.1["id"])?;
        ended(&product, &format!("/privacy/erasures/{erasure}")).await?;
        let ids = [
            ("jobs", job),
            ("printOrders", order),
            ("erasures", erasure),
            ("accounts", text(&access["account"])?),
            ("operators", text(&access["actor"]["id"])?),
            ("products", product_id),
            ("thngs", thng),
            ("actions", action),
        ];
        let parts = parts.into_iter().chain([("changeId", change)]).collect();
        Ok(Self { product, parts, ids: ids.into_iter().chain(others).collect() })
    }

    /// A path of the document with its parts filled.
    fn fill(&self, path: &str) -> Result<String> {
        let mut filled = Vec::new();
        let segments: Vec<&str> = path.split('/').collect();
        for (at, segment) in segments.iter().enumerate() {
            let Some(name) = segment.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else {
                filled.push((*segment).to_owned());
                continue;
            };
            let value = match self.parts.get(name) {
                Some(value) => value,
                // An id belongs to the collection before it; one behind a type is an action's.
                None => {
                    let before = segments.get(at - 1).copied().unwrap_or_default();
                    let kind = match before {
                        _ if path.starts_with("/jobs/qr/") => "printOrders",
                        _ if path.starts_with("/jobs/") => "jobs",
                        "{type}" => "actions",
                        other => other,
                    };
                    self.ids.get(kind).with_context(|| format!("nothing fills {name} of {path}"))?
                }
            };
            filled.push(value.clone());
        }
        Ok(filled.join("/"))
    }

    async fn get(&self, path: &str) -> Result<Response> {
        let request = self.product.http.get(format!("{}{path}", self.product.api));
        Ok(request.header(header::AUTHORIZATION, &self.product.key).send().await?)
    }

    async fn document(&self) -> Result<Value> {
        Ok(self.get("/openapi.json").await?.error_for_status()?.json().await?)
    }
}

/// The path with another end of its first part, which nothing has.
fn of_another(path: &str, target: &str) -> String {
    let at = path.split('/').position(|segment| segment.starts_with('{'));
    let changed = |(index, segment): (usize, &str)| match at == Some(index) {
        true => {
            format!("{}{}", &segment[..segment.len() - 1], if segment.ends_with('x') { 'y' } else { 'x' })
        }
        false => segment.to_owned(),
    };
    target.split('/').enumerate().map(changed).collect::<Vec<_>>().join("/")
}

/// Each path and operation of the document is served, with and without the prefix, and says how mature it is.
async fn every_path_answers_with_and_without_the_prefix(engine: Engine) -> Result<()> {
    let filled = Filled::new(engine).await?;
    let document = filled.document().await?;
    let (mut reads, mut operations) = (0, 0);
    for (path, item) in document["paths"].as_object().context("paths")? {
        // These take sessions, not keys: `signin`.
        if path.starts_with("/console/") {
            continue;
        }
        let target = filled.fill(path)?;
        for (method, operation) in item.as_object().context("item")? {
            operations += 1;
            let maturity = operation["x-maturity"].as_str().unwrap_or_default();
            ensure!(
                ["Beta", "Stable", "General Availability"].contains(&maturity),
                "{method} {path}: x-maturity {maturity:?}"
            );
            let method: Method = method.to_uppercase().parse()?;
            // A resource is there to be deleted once only: the answer is that there is none.
            let deletes = method == Method::DELETE && !target.contains("redirect");
            let target = match target.split_once("/properties") {
                // One that is not there is no error, but its owner must be.
                Some((_, rest)) if deletes => format!("/thngs/UKXAGyEf8SQ5eTDmVgGpHqAa/properties{rest}"),
                None if deletes => of_another(path, &target),
                Some(_) | None => target.clone(),
            };
            let mut answers = Vec::new();
            for prefix in ["", "/v2"] {
                // Without a body and with a wrong parameter, so that a write is understood and refused; a DELETE
                // refuses a parameter that it does not have.
                let is_bulk = path.matches('/').count() == 1 || path.ends_with("/applications");
                let query = match deletes {
                    true if is_bulk => "?ids=UKXAGyEf8SQ5eTDmVgGpHqAa",
                    true => "",
                    false => "?wait=never",
                };
                let url = format!("{}{prefix}{target}{query}", filled.product.api);
                let request = filled.product.http.request(method.clone(), &url);
                let response = request
                    .header(header::AUTHORIZATION, &filled.product.key)
                    .header(header::ACCEPT, "application/json")
                    .header("x-request-id", "the-same-for-both")
                    .send()
                    .await?;
                let (status, allow) = (response.status(), response.headers().get(header::ALLOW).cloned());
                ensure!(allow.is_none(), "{method} {url}: {status} {allow:?}");
                answers.push((status, response.text().await?));
            }
            let (status, body) = &answers[0];
            // The clock, how long an edge was silent, when a signed URL ends, when a key was last used and the end of an export are another
            // time at each look; an invitation has another code each time, and the URLs of files keep the prefix.
            let varies = ["/status", "/events", "/time", "/keys"].contains(&path.as_str())
                || path.starts_with("/audit")
                || path.starts_with("/files")
                || path.starts_with("/keys/")
                || path == "/jobs/qr/{id}/files"
                || path.ends_with("/invitation");
            let same = if varies { status == &answers[1].0 } else { answers[0] == answers[1] };
            ensure!(same, "{method} {path}: {answers:?}");
            if path.starts_with("/platform/") {
                // The platform operator has keys of its own.
                ensure!(*status == StatusCode::FORBIDDEN, "{method} {target}: {status} {body}");
            } else if method == Method::PUT && path.ends_with("/content") {
                // Any bytes are content, none as well.
                ensure!(*status == StatusCode::OK, "{method} {target}: {status} {body}");
            } else if method == Method::GET {
                reads += 1;
                // An operator is no application, the action of no collection, the file empty, and no report was made.
                let is_absent = path == "/applications/me"
                    || ["/content", "/photo"].iter().any(|end| path.ends_with(end))
                    || path.starts_with("/collections/") && path.ends_with("/{action}");
                let expected = if is_absent { StatusCode::NOT_FOUND } else { StatusCode::OK };
                ensure!(*status == expected, "{method} {target}: {status} {body}");
            } else {
                let code = serde_json::from_str::<Value>(body).unwrap_or_default()["code"].clone();
                // A cancel or an approval asks for nothing that could be wrong, and the job has ended.
                let cancels = ["/cancel", "/approve"].iter().any(|end| target.ends_with(end));
                // The platform gave the domain.
                let is_given = target.ends_with("/verify") || target.ends_with("/certificate");
                // An operator is no user: what users do asks for nothing that could be wrong.
                let of_users = path.starts_with("/auth/") && *status == StatusCode::FORBIDDEN;
                let expected = match (deletes, of_users) {
                    _ if cancels || is_given => (409, json!(40_901)),
                    // A test event says how it went, a product without links has none to check, and a delivery is named by the path.
                    _ if target.ends_with("/ping") || target.ends_with("/links/check") => (200, Value::Null),
                    // What is invited again is named by the path alone.
                    _ if target.ends_with("/invitation") => (201, Value::Null),
                    _ if target.contains("/deliveries/") => (404, json!(40_401)),
                    (true, _) => (404, json!(40_401)),
                    (false, true) => (403, json!(40_301)),
                    (false, false) => (400, code.clone()),
                };
                ensure!((status.as_u16(), code) == expected, "{method} {target}: {status} {body}");
            }
        }
    }
    ensure!(reads > 15 && operations > 30, "only {reads} of {operations} operations read");
    Ok(())
}

/// The page for people has an anchor for every code, and the document names only what is there.
async fn the_docs_page_is_self_contained(engine: Engine) -> Result<()> {
    let filled = Filled::new(engine).await?;
    for path in ["/docs", "/v2/docs"] {
        let response = filled.product.http.get(format!("{}{path}", filled.product.api)).send().await?;
        ensure!(response.status() == StatusCode::OK, "{path}: {}", response.status());
        let policy =
            response.headers().get(header::CONTENT_SECURITY_POLICY).context("no policy")?.to_str()?;
        ensure!(policy.contains("default-src 'none'"), "{policy}");
        let page = response.text().await?;
        for code in Code::ALL {
            let anchor = format!("id=\"error-{}\"", *code as u32);
            ensure!(page.matches(&anchor).count() == 1, "{path}: {anchor}");
        }
        for outside in ["<script", "<link", "<img", "<iframe", "src=", "@import", "url(", "=\"//"] {
            ensure!(!page.contains(outside), "{path} holds {outside}");
        }
        // Every link inside leads somewhere, and none to another host.
        for link in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            match link.strip_prefix('#') {
                Some(anchor) => ensure!(page.contains(&format!("id=\"{anchor}\"")), "{link}"),
                // Where abuse is reported.
                None if link.starts_with("mailto:") => {}
                None => {
                    let response = filled.product.http.get(format!("{}{link}", filled.product.api));
                    ensure!(response.send().await?.status() == StatusCode::OK, "{link}");
                }
            }
        }
    }
    Ok(())
}

/// Errors of every part of the product point to their place on the page.
async fn more_info_links_to_the_explanation_of_the_error(engine: Engine) -> Result<()> {
    let filled = Filled::new(engine).await?;
    let (api, edge, key) = (&filled.product.api, &filled.product.edge, filled.product.key.as_str());
    let http = &filled.product.http;
    let mut codes = BTreeSet::new();
    for (request, status) in [
        (http.get(format!("{api}/access")), 401),
        (http.get(format!("{api}/access")).header("authorization", "x"), 401),
        (http.get(format!("{api}/nothing")), 404),
        (http.get(format!("{api}/thngs/x")).header("authorization", key), 404),
        (http.patch(format!("{api}/v2/thngs")).header("authorization", key), 405),
        (http.get(format!("{api}/thngs?perPage=0")).header("authorization", key), 400),
        (http.get(format!("{api}/thngs?nextPageToken=x")).header("authorization", key), 400),
        (http.post(format!("{api}/thngs")).header("authorization", key).json(&json!({})), 400),
        (http.post(format!("{api}/thngs")).header("authorization", key).body("x"), 415),
        (
            http.post(format!("{api}/thngs"))
                .header("authorization", key)
                .header("content-type", "application/json")
                .body("{"),
            400,
        ),
        (http.get(format!("{edge}/NOT-THERE")), 404),
        (http.get(format!("{edge}/a/b")), 404),
        (http.post(format!("{edge}/OF-THNG")), 405),
        (http.get(format!("{edge}/OF-THNG.png?w=94")), 400),
        // The smallest canvas has no room for version 40.
        (http.get(format!("{edge}/OF-THNG.png?w=95&version=40")), 422),
        (http.get(format!("{edge}/OF-THNG")).header("host", "unknown.test"), 421),
        (http.get(format!("{edge}/redirections")), 401),
    ] {
        let response = request.send().await?;
        let (found, url) = (response.status(), response.url().clone());
        let id = response.headers().get("x-request-id").cloned();
        ensure!(id.is_some_and(|id| id.len() >= 8), "{url}: no X-Request-Id");
        let body: Value = response.json().await?;
        ensure!(found == status && body["status"] == status, "{url}: {found} {body}");
        let more = body["moreInfo"].as_str().context("moreInfo")?;
        let (page, anchor) = more.split_once('#').context("no anchor")?;
        let html = http.get(page).send().await?.error_for_status()?.text().await?;
        let is_there = html.contains(&format!("id=\"{anchor}\""));
        ensure!(is_there && anchor == format!("error-{}", body["code"]), "{more} for {}", body["code"]);
        codes.insert(body["code"].as_u64().context("code")?);
    }
    ensure!(codes.len() >= 13, "only {codes:?}");
    Ok(())
}

crate::on_both_engines!(
    every_path_answers_with_and_without_the_prefix,
    the_docs_page_is_self_contained,
    more_info_links_to_the_explanation_of_the_error,
);
