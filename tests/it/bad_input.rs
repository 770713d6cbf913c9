//! Invalid requests to the running product: the documented status and body, and no change of any data.
//!
//! Management paths are requested at the API and, through the edge, on the short domain.

mod api;
mod edge;
mod members;
mod resources;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use reqwest::{Method, Response, header};
use serde_json::{Value, json};
use shared::problem::Code;
use tests::{
    accounts,
    db::Engine,
    fingerprint::fingerprint,
    product::{Options, Product, random_key},
};

use self::{
    api::{conflicts_are_refused, every_endpoint_refuses_common_faults},
    edge::the_edge_refuses_invalid_requests,
    members::wrong_members_are_named,
    resources::{resources_of_another_account_are_404, wrong_arrays_lists_and_short_ids_are_refused},
};

/// An id that nothing has.
const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";
/// The short domain of the second account; the edge of this product serves it too.
const OTHER_DOMAIN: &str = "other.test";
const JSON: &str = "application/json";

/// A product with two accounts, and resources to aim wrong requests at.
struct Bench {
    product: Product,
    /// The first account's key; wrong requests carry it unless they say otherwise.
    key: String,
    /// Host and port of the edge, which is the first account's short domain.
    domain: String,
    /// A product and a Thng with a redirection each, and a Thng without.
    ours: Ids,
    bare: String,
    /// Those of the second account.
    theirs: Ids,
}

struct Ids {
    product: String,
    thng: String,
    /// Redirections of the Thng and of the product.
    short_id: String,
    product_short_id: String,
}

/// A wrong request, and what it must be answered with.
#[derive(Debug, Clone)]
struct Case {
    method: Method,
    path: String,
    key: Option<String>,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    code: Code,
    /// Words that the faults must hold, each in a fault of its own; empty means that any fault will do.
    faults: Vec<String>,
    /// Whether the edge answers the same; longer request lines than it takes are the API's alone.
    on_edge: bool,
}

impl Bench {
    async fn new(engine: Engine) -> Result<Self> {
        let product = Product::start(Options { engine, ..Options::default() }).await?;
        let other = add_account(&product).await?;
        let ours = make(&product, &product.key.clone(), "OURS").await?;
        let theirs = make(&product, &other, "THEIRS").await?;
        let bare = create(&product, &product.key, "/thngs", json!({"name": "bare"}), "id").await?;
        let domain = product.edge.trim_start_matches("http://").to_owned();
        Ok(Self { key: product.key.clone(), domain, product, ours, bare, theirs })
    }

    /// A request with the first account's key and without a body.
    fn case(&self, method: Method, path: impl Into<String>, code: Code, faults: &[&str]) -> Case {
        Case {
            method,
            path: path.into(),
            key: Some(self.key.clone()),
            headers: Vec::new(),
            body: Vec::new(),
            code,
            faults: faults.iter().map(|fault| (*fault).to_owned()).collect(),
            on_edge: true,
        }
    }

    /// Sends each case, through the edge too, and checks that the database stays as it is.
    async fn check(&self, cases: &[Case]) -> Result<()> {
        let before = self.fingerprint().await?;
        for case in cases {
            let bases = [Some(&self.product.api), case.on_edge.then_some(&self.product.edge)];
            for base in bases.into_iter().flatten() {
                self.check_one(base, case).await.with_context(|| {
                    let body: String = String::from_utf8_lossy(&case.body).chars().take(300).collect();
                    format!("{} {base}{} {:?} {body}", case.method, case.path, case.headers)
                })?;
            }
        }
        self.is_unchanged(&before).await
    }

    async fn is_unchanged(&self, before: &BTreeMap<String, Vec<String>>) -> Result<()> {
        let after = self.fingerprint().await?;
        for table in before.keys().chain(after.keys()) {
            let (old, new) = (before.get(table), after.get(table));
            ensure!(old == new, "{table} changed: {old:?} to {new:?}");
        }
        Ok(())
    }

    async fn check_one(&self, base: &str, case: &Case) -> Result<()> {
        let mut request = self.product.http.request(case.method.clone(), format!("{base}{}", case.path));
        if let Some(key) = &case.key {
            request = request.header(header::AUTHORIZATION, key);
        }
        for (name, value) in &case.headers {
            request = request.header(*name, value);
        }
        if !case.body.is_empty() {
            request = request.body(case.body.clone());
        }
        let errors = self.problem(request.send().await?, case.code).await?;
        check_faults(&errors, &case.faults)
    }

    /// Checks the whole of the common error body and its headers; gives the faults.
    async fn problem(&self, response: Response, code: Code) -> Result<Vec<String>> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        ensure!(status == code.status(), "{status} instead of {}: {text}", code.status());
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        ensure!(header("content-type") == Some(JSON), "{headers:?}");
        ensure!(header("x-request-id").is_some_and(|id| id.len() >= 8), "{headers:?}");
        if status == 401 {
            ensure!(header("www-authenticate").is_some(), "{headers:?}");
        }
        if status == 405 {
            ensure!(header("allow").is_some_and(|allow| allow.contains("GET")), "{headers:?}");
        }
        let body: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
        let number = code as u32;
        let expected = json!({"status": status, "errors": body["errors"], "code": number,
            "moreInfo": format!("{}/docs#error-{number}", self.product.api)});
        ensure!(body == expected, "{body} instead of {expected}");
        let errors: Vec<String> = serde_json::from_value(body["errors"].clone())?;
        ensure!(!errors.is_empty() && errors.iter().all(|error| !error.trim().is_empty()), "{body}");
        ensure!(!text.contains(&self.key), "the key came back: {text}");
        Ok(errors)
    }

    async fn fingerprint(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let mut tables = fingerprint(&self.product.location()).await?;
        // The process itself passes over what was written before, and edges report unknown ids a while after they were
        // asked for: neither is what a request changes.
        for table in
            ["event_places", "scan_backfill", "redirection_fill", "unknown_scans", "unknown_scan_reports"]
        {
            tables.remove(table);
        }
        Ok(tables)
    }
}

impl Case {
    fn json(self, body: &Value) -> Self {
        self.raw(JSON, body.to_string())
    }

    fn raw(self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }.header("content-type", media_type)
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn key(self, key: Option<&str>) -> Self {
        Self { key: key.map(str::to_owned), ..self }
    }

    fn api_only(self) -> Self {
        Self { on_edge: false, ..self }
    }
}

/// Every expected word is in a fault of its own, and no fault is left over.
fn check_faults(errors: &[String], expected: &[String]) -> Result<()> {
    if expected.is_empty() {
        return Ok(());
    }
    let mut left = errors.to_vec();
    for fault in expected {
        let at = left.iter().position(|error| error.contains(fault.as_str()));
        left.remove(at.with_context(|| format!("{fault:?} is not in {errors:?}"))?);
    }
    ensure!(left.is_empty(), "more faults than {expected:?}: {errors:?}");
    Ok(())
}

/// Adds a second account with a short domain of its own while the product runs; gives its key.
async fn add_account(product: &Product) -> Result<String> {
    let (db, key) = (product.location().open().await?, random_key()?);
    let now = 1_760_000_000_000;
    let other = accounts::add(&db, now, "x@example.com", Some(OTHER_DOMAIN)).await?;
    accounts::add_key(&db, now, &key, other).await?;
    db.close().await;
    Ok(key)
}

/// Creates a product and a Thng with a redirection each; the short ids begin with `prefix`.
async fn make(api: &Product, key: &str, prefix: &str) -> Result<Ids> {
    let product = create(api, key, "/products", json!({"name": prefix}), "id").await?;
    let thng = create(api, key, "/thngs", json!({"name": prefix}), "id").await?;
    let mut short_ids = Vec::new();
    for (n, id) in [&thng, &product].into_iter().enumerate() {
        let body = json!({"platformId": id, "shortId": format!("{prefix}-{n}"),
            "defaultRedirectUrl": "https://example.com/"});
        short_ids.push(create(api, key, "/redirections?wait=edges", body, "shortId").await?);
    }
    let [short_id, product_short_id] = short_ids.try_into().map_err(|_| anyhow::anyhow!("two"))?;
    Ok(Ids { product, thng, short_id, product_short_id })
}

async fn create(api: &Product, key: &str, path: &str, body: Value, member: &str) -> Result<String> {
    let request = api.http.post(format!("{}{path}", api.api)).header(header::AUTHORIZATION, key);
    let response = request.header(header::ACCEPT, JSON).json(&body).send().await?;
    let (status, body) = (response.status(), response.json::<Value>().await?);
    ensure!(status == 201, "{status}: {body}");
    Ok(body[member].as_str().context("no id")?.to_owned())
}

crate::on_both_engines!(
    every_endpoint_refuses_common_faults,
    wrong_members_are_named,
    wrong_arrays_lists_and_short_ids_are_refused,
    resources_of_another_account_are_404,
    conflicts_are_refused,
    the_edge_refuses_invalid_requests,
    a_change_would_be_seen,
);

/// The comparison of the database can fail.
async fn a_change_would_be_seen(engine: Engine) -> Result<()> {
    let bench = Bench::new(engine).await?;
    let before = bench.fingerprint().await?;
    ensure!(bench.fingerprint().await? == before, "the database changes by itself");
    let path = format!("/redirections/{}", bench.ours.short_id);
    let body = json!({"defaultRedirectUrl": "https://example.com/changed"});
    bench.product.must_answer(200, Method::PUT, &path, Some(body)).await?;
    let after = bench.fingerprint().await?;
    for table in ["redirections", "redirect_log", "log_head"] {
        ensure!(before.contains_key(table) && before.get(table) != after.get(table), "{table}");
    }
    Ok(())
}
