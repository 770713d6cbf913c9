//! Faults that every endpoint of redirections refuses alike, and conflicts with stored data.

use anyhow::{Result, ensure};
use reqwest::{Method, header};
use serde_json::{Value, json};
use shared::problem::Code;
use tests::db::Engine;

use super::{Bench, Case, JSON};

/// An endpoint with a path that is right.
pub(super) struct Endpoint {
    pub(super) method: Method,
    pub(super) path: String,
    /// A body that is right; `None` where the endpoint takes none.
    pub(super) body: Option<Value>,
}

impl Endpoint {
    pub(super) fn writes(&self) -> bool {
        self.method != Method::GET
    }

    /// The path with a parameter more.
    pub(super) fn with(&self, parameter: &str) -> String {
        let mark = if self.path.contains('?') { '&' } else { '?' };
        format!("{}{mark}{parameter}", self.path)
    }
}

/// Every endpoint of redirections, with and without the prefix.
pub(super) fn endpoints(bench: &Bench) -> Vec<Endpoint> {
    let (ours, target) = (&bench.ours, json!({"defaultRedirectUrl": "https://example.com/new"}));
    let draft = json!({"platformId": ours.thng, "defaultRedirectUrl": "https://example.com/new"});
    let (id, other) = (&ours.short_id, &ours.product_short_id);
    let mut all = vec![
        (Method::POST, "/redirections".to_owned(), Some(draft.clone())),
        (Method::POST, "/v2/redirections".to_owned(), Some(json!([draft]))),
        (Method::GET, "/redirections".to_owned(), None),
        (Method::GET, format!("/v2/redirections?platformId={}", ours.thng), None),
        (Method::PUT, format!("/redirections?ids={id},{other}"), Some(target.clone())),
        (Method::DELETE, format!("/redirections?ids={id},{other}"), None),
        (Method::GET, format!("/redirections/{id}"), None),
        (Method::PUT, format!("/redirections/{id}"), Some(target.clone())),
        (Method::DELETE, format!("/v2/redirections/{id}"), None),
        (Method::GET, format!("/redirections/{id}.qr"), None),
    ];
    for resource in [format!("/thngs/{}", ours.thng), format!("/v2/products/{}", ours.product)] {
        all.extend([
            (Method::POST, format!("{resource}/redirector"), Some(target.clone())),
            (Method::GET, format!("{resource}/redirector"), None),
            (Method::PUT, format!("{resource}/redirector"), Some(target.clone())),
            (Method::DELETE, format!("{resource}/redirector"), None),
            (Method::GET, format!("{resource}/redirector/qr"), None),
        ]);
    }
    all.into_iter().map(|(method, path, body)| Endpoint { method, path, body }).collect()
}

/// Keys, methods, media types, JSON, sizes and `wait`: the same at every endpoint.
pub(super) async fn every_endpoint_refuses_common_faults(engine: Engine) -> Result<()> {
    let bench = Bench::new(engine).await?;
    let mut cases = Vec::new();
    for endpoint in endpoints(&bench) {
        let Endpoint { method, path, body } = &endpoint;
        let case = |code, faults: &[&str]| bench.case(method.clone(), path, code, faults);
        let sent = |case: Case| match body {
            Some(body) => case.json(body),
            None => case,
        };
        cases.push(sent(case(Code::KeyMissing, &[])).key(None));
        for unknown in ["x", &"C".repeat(80), &bench.key[1..], &format!("Basic {}", bench.key)] {
            cases.push(sent(case(Code::KeyUnknown, &[])).key(Some(unknown)));
        }
        let in_query = endpoint.with(&format!("access_token={}", "C".repeat(80)));
        cases.push(sent(bench.case(method.clone(), in_query, Code::KeyUnknown, &[])).key(None));
        cases.push(bench.case(Method::PATCH, path, Code::MethodNotAllowed, &[]).json(&json!({})));
        if endpoint.writes() {
            for wait in ["wait=all", "wait=", "wait=EDGES"] {
                let path = endpoint.with(wait);
                cases.push(sent(bench.case(method.clone(), path, Code::InvalidParameter, &["wait"])));
            }
            for timeout in ["x", "", "2", "-1s", "21s", "20001ms", "1.5s", "99999999999999999999s", "1m"] {
                let path = endpoint.with(&format!("wait=edges&timeout={timeout}"));
                cases.push(sent(bench.case(method.clone(), path, Code::InvalidParameter, &["timeout"])));
            }
        }
        let Some(body) = body else { continue };
        for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"] {
            cases.push(case(Code::UnsupportedMediaType, &["Content-Type"]).raw(media_type, body.to_string()));
        }
        for malformed in ["{", "{'a': 1}", "{\"defaultRedirectUrl\":", "\u{feff}{}", "[1,]", "nul", "{}{}"] {
            cases.push(case(Code::MalformedJson, &["JSON"]).raw(JSON, malformed));
        }
        cases.push(case(Code::MalformedJson, &["body"]));
        let large = json!({"defaultRedirectUrl": "x".repeat(2 << 20)}).to_string();
        // On the edge too: it stops what is beyond its own limit, in the same form.
        cases.push(case(Code::TooLarge, &[]).raw(JSON, large));
        cases.push(case(Code::TooLarge, &["1048576"]).raw(JSON, vec![b' '; (1 << 20) + 1]));
        for wrong in [json!("text"), json!(1), json!(true), json!(null)] {
            cases.push(case(Code::Invalid, &["must be a JSON object"]).json(&wrong));
        }
    }
    for path in ["/redirections/", "/redirections/A/B", "/v2/v2/redirections", "/redirections/A.qr/x"] {
        cases.push(bench.case(Method::GET, path, Code::NoSuchPath, &[]));
    }
    bench.check(&cases).await?;
    // A method that is wrong says which are right.
    for endpoint in endpoints(&bench) {
        let path = endpoint.path.split('?').next().unwrap_or_default();
        for base in [&bench.product.api, &bench.product.edge] {
            let request = bench.product.http.request(Method::PATCH, format!("{base}{path}"));
            let response = request.header(header::AUTHORIZATION, &bench.key).send().await?;
            let allow = response.headers().get(header::ALLOW).and_then(|allow| allow.to_str().ok());
            let names = allow.unwrap_or_default().split(',').map(str::trim);
            ensure!(names.clone().any(|name| name == endpoint.method.as_str()), "{path}: {allow:?}");
        }
    }
    Ok(())
}

/// Short ids that are taken, and keys of repeated requests that were used for others.
pub(super) async fn conflicts_are_refused(engine: Engine) -> Result<()> {
    let bench = Bench::new(engine).await?;
    let ours = &bench.ours;
    let draft = |short_id: &str| json!({"platformId": ours.thng, "defaultRedirectUrl": "https://example.com/a", "shortId": short_id});
    // One that was deleted stays taken.
    bench.product.must_answer(201, Method::POST, "/redirections", Some(draft("GONE"))).await?;
    bench.product.must_answer(200, Method::DELETE, "/redirections/GONE", None).await?;
    let create = format!("{}/redirections", bench.product.api);
    for (key, path, body) in [
        ("used-1", create.clone(), draft("FIRST")),
        ("used-2", create.clone(), json!([draft("SECOND")])),
        ("used-3", format!("{}/thngs/{}/redirector", bench.product.api, ours.thng), draft("THIRD")),
    ] {
        let request = bench.product.http.post(path).header(header::AUTHORIZATION, &bench.key);
        let response = request.header("idempotency-key", key).json(&body).send().await?;
        ensure!(response.status().is_success(), "{}", response.text().await?);
    }
    let mut cases = Vec::new();
    let redirector = format!("/thngs/{}/redirector", ours.thng);
    for path in ["/redirections", "/v2/redirections", &redirector] {
        let post = |code, faults: &[&str]| bench.case(Method::POST, path, code, faults);
        for taken in
            [ours.short_id.clone(), ours.short_id.to_lowercase(), "GONE".to_owned(), "gone".to_owned()]
        {
            cases.push(post(Code::ShortIdTaken, &["shortId"]).json(&draft(&taken)));
        }
        for key in ["used-1", "used-2", "used-3"] {
            let case = post(Code::IdempotencyMismatch, &["Idempotency-Key"]);
            cases.push(case.json(&draft("ANOTHER")).header("idempotency-key", key));
        }
        for key in ["", &"k".repeat(256), "café"] {
            let case = post(Code::Invalid, &["Idempotency-Key"]);
            cases.push(case.json(&draft("ANOTHER")).header("idempotency-key", key));
        }
    }
    bench.check(&cases).await
}
