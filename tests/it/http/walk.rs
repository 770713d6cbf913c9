//! Every operation of the route table with each kind of key, and from another tenant.
//!
//! Both walks are generated from the OpenAPI document: a route without a line in [`TABLE`], or whose path names a kind
//! of resource that [`Fixture`] does not create, fails.

mod audit;
mod bodies;
mod console;
mod roles;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use ::actions::store::actions::{self, NewAction};
use anyhow::{Context, Result};
use axum::http::Method;
use kernel::{domain::access::UserRights, store::Ctx};
use oidc::{domain::identity::LinkedIdentity, store::identities};
use serde_json::{Value, json};
use shared::{id::ActionId, time::UnixMillis};
use tests::db::{Engine, random16};

use self::{
    bodies::{BODIES, ERASURE, JOB, REACTION, TASK, TRIGGER, WEBHOOK},
    table::{NOT_WITH_OWN_RIGHTS, TABLE},
};
use super::{Answer, Api};

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// Operations that need no key, with tests of their own: `http::operators`, `signin` and `oidc`.
const WITHOUT_KEY: [&str; 6] = [
    "/invitations",
    "/console/api/session",
    "/console/api/session/link",
    "/console/api/passwordReset",
    "/console/api/oidc/begin",
    "/console/api/oidc/callback",
];

/// Kinds of key, in the order of the columns of [`TABLE`].
const KINDS: [&str; 5] = ["operator", "trusted application", "application", "user", "thng"];

/// What one request may change or remove many of.
const BULK: [&str; 10] = [
    "products",
    "thngs",
    "places",
    "collections",
    "files",
    "projects",
    "batches",
    "webhooks",
    "reactions",
    "applications",
];

/// Every operation that takes a key: method and path.
fn operations() -> Result<Vec<(Method, String)>> {
    let document = serde_json::to_value(control::http::document())?;
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().context("paths")? {
        for (method, operation) in item.as_object().context("item")? {
            if operation["security"] == json!([{}]) || operation["security"] == json!([]) {
                anyhow::ensure!(WITHOUT_KEY.contains(&path.as_str()), "{path} is public: give it a test");
                continue;
            }
            if operation["security"] == json!([{"session": []}]) {
                let name = format!("{} {path}", method.to_uppercase());
                anyhow::ensure!(console::OPERATIONS.contains(&name.as_str()), "{name} is in no walk");
                continue;
            }
            found.push((method.to_uppercase().parse()?, path.clone()));
        }
    }
    Ok(found)
}

/// The operations that take no body, as `METHOD path`.
fn without_body() -> BTreeSet<String> {
    let document = control::http::document();
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        item.as_object().into_iter().flatten().map(move |(method, operation)| (method, path, operation))
    });
    all.filter(|(.., operation)| operation.get("requestBody").is_none())
        .map(|(method, path, _)| format!("{} {path}", method.to_uppercase()))
        .collect()
}

/// One of everything in the first account, within the reach of one key of each kind.
struct Fixture {
    /// By the segment of a path before the id.
    ids: BTreeMap<&'static str, String>,
    /// In the order of [`KINDS`].
    keys: [String; 5],
    without_body: BTreeSet<String>,
}

fn text(body: &Value, member: &str) -> Result<String> {
    Ok(body[member].as_str().with_context(|| format!("{member} in {body}"))?.to_owned())
}

impl Fixture {
    async fn new(api: &Api) -> Result<Self> {
        api.codes_to_callers().await?;
        let mut ids = BTreeMap::new();
        let project = text(&api.create("/projects", json!({"name": "p"})).await?, "id")?;
        let applications = format!("/projects/{project}/applications");
        let app = json!({"name": "a", "usersMayCreate": true, "redirectHosts": ["example.com"]});
        let app = api.create(&applications, app).await?;
        let secret = api.get(&format!("{applications}/{}/secretKey", text(&app, "id")?)).await?.json();
        let (public, secret) = (text(&app, "appApiKey")?, text(&secret, "secretApiKey")?);
        let uri = "/auth/evrythng/users?anonymous=true";
        let user = api.call_as(&public, Method::POST, uri, Some(json!({}))).await?.json();
        let user_key = text(&user, "evrythngApiKey")?;
        let scopes = json!({"users": [user["evrythngUser"]], "projects": [project]});
        for (kind, body) in [
            ("products", json!({"name": "x", "scopes": scopes})),
            ("thngs", json!({"name": "x", "scopes": scopes})),
            ("places", json!({"name": "x", "scopes": scopes})),
            ("collections", json!({"name": "x", "scopes": scopes})),
            ("files", json!({"name": "x", "scopes": scopes, "privateAccess": true})),
            ("batches", json!({"name": "x", "scopes": scopes})),
        ] {
            ids.insert(kind, text(&api.create(&format!("/{kind}"), body).await?, "id")?);
        }
        let content = format!("/files/{}/content", ids["files"]);
        api.call(Method::PUT, &content, Some(json!("content"))).await?;
        let thng_key = api.create("/auth/evrythng/thngs", json!({"thngId": ids["thngs"]})).await?;
        for kind in ["products", "thngs"] {
            let body = json!({"platformId": ids[kind], "defaultRedirectUrl": "https://example.com",
                "scopes": scopes});
            let made = api.call(Method::POST, "/redirections", Some(body)).await?;
            let location = made.header("location").context("location")?.to_owned();
            let short_id = location.rsplit('/').next().context("short id")?;
            let short_id = short_id.split('?').next().unwrap_or_default().to_owned();
            ids.insert("redirections", short_id);
        }
        let job = api.call(Method::POST, "/jobs/actions", Some(serde_json::from_str(JOB)?)).await?;
        let job = job.header("location").context("location")?.rsplit('/').next().context("id")?.to_owned();
        let tasks = format!("/batches/{}/tasks", ids["batches"]);
        let task = super::batches::finished(api, &tasks, serde_json::from_str(TASK)?).await?;
        // What it made belongs to nobody else of the fixture.
        let made = api.get("/thngs?filter=name=x&perPage=1").await?.json();
        api.call(Method::DELETE, &format!("/thngs/{}", text(&made[0], "id")?), None).await?;
        let webhook = api.create("/webhooks", serde_json::from_str(WEBHOOK)?).await?;
        let reaction = api.create("/reactions", serde_json::from_str(REACTION)?).await?;
        // It was never commissioned: that opens a case.
        let mut trigger: Value = serde_json::from_str(TRIGGER)?;
        trigger["thng"] = json!(ids["thngs"]);
        let asked = api.call(Method::POST, "/authentication", Some(trigger)).await?;
        anyhow::ensure!(asked.status == 200, "{asked:?}");
        let cases = api.get("/authentication/cases").await?.json();
        let erasure: Value = serde_json::from_str(ERASURE)?;
        let erasure = api.call(Method::POST, "/privacy/erasures", Some(erasure)).await?.json();
        let operator_keys = api.get("/keys").await?.json();
        let role = text(&api.create("/roles", json!({"name": "x"})).await?, "id")?;
        let accesses = format!("/accounts/{}/operatorAccess", api.made.account);
        let colleague = json!({"email": "colleague@example.com", "role": "viewer"});
        let colleague = text(&api.create(&accesses, colleague).await?, "id")?;
        let identity = LinkedIdentity {
            issuer: "https://login.example.com".to_owned(),
            subject: "colleague".to_owned(),
            email: "colleague@example.com".to_owned(),
            created_at: UnixMillis(1),
            last_used_at: UnixMillis(1),
        };
        let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
        identities::insert(&mut tx, (api.made.account, colleague.parse()?), &identity).await?;
        tx.commit().await?;
        let id = ActionId::new(1, random16()?);
        let action = NewAction {
            id,
            account: api.made.account,
            kind: "scans".to_owned(),
            thng: Some(ids["thngs"].parse()?),
            product: Some(ids["products"].parse()?),
            timestamp: UnixMillis(1),
            doc: json!({"scopes": scopes, "collection": ids["collections"]}),
        };
        let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
        // Made now: the event of an older one would be purged in the middle of a test that takes long.
        actions::insert(&mut tx, api.made.app.core.clock.now(), &[action]).await?;
        tx.commit().await?;
        ids.extend([
            ("accounts", api.made.account.to_string()),
            ("operators", api.made.operator.to_string()),
            ("accesses", colleague.clone()),
            ("operatorAccess", colleague),
            ("identities", identity.id()),
            ("roles", role.clone()),
            ("accessPolicies", role),
            ("{name}", "global_read".to_owned()),
            ("projects", project),
            ("applications", text(&app, "id")?),
            ("users", text(&user, "evrythngUser")?),
            ("actions", job),
            ("tasks", text(&task, "id")?),
            ("erasures", text(&erasure, "id")?),
            ("webhooks", text(&webhook, "id")?),
            ("reactions", text(&reaction, "id")?),
            ("cases", text(&cases[0], "id")?),
            ("keys", text(&operator_keys[0], "id")?),
            ("{host}", "evil.example".to_owned()),
            ("{domain}", "tn.gg".to_owned()),
            ("{delivery}", "UKXAGyEf8SQ5eTDmVgGpHqAb".to_owned()),
            ("{action}", id.to_string()),
            ("{type}", "scans".to_owned()),
            ("{key}", "temp".to_owned()),
        ]);
        let keys = [api.key.clone(), secret, public, user_key, text(&thng_key, "thngApiKey")?];
        Ok(Self { ids, keys, without_body: without_body() })
    }

    /// The path with the ids of the fixture, or with ids that nothing has.
    fn uri(&self, path: &str, known: bool) -> Result<String> {
        let (mut uri, mut before) = (String::new(), "");
        for segment in path.split('/').skip(1) {
            uri.push('/');
            if segment.starts_with('{') {
                let id = self.ids.get(segment).or_else(|| self.ids.get(before));
                let id = id.with_context(|| format!("{path}: the fixture has none of {before}"))?;
                uri.push_str(if known || ["{type}", "{key}"].contains(&segment) { id } else { UNKNOWN });
            } else {
                uri.push_str(segment);
            }
            before = segment;
        }
        let many = path.trim_start_matches('/');
        let many = if many == "projects/{project}/applications" { "applications" } else { many };
        if BULK.contains(&many) {
            uri.push_str("?ids=");
            uri.push_str(if known { &self.ids[many] } else { UNKNOWN });
        }
        if path == "/redirections" {
            // For the operations on many; the list has no such parameter.
            uri.push_str(if known { "?ids=" } else { "?ids=NOTHING1234" });
            if known {
                uri.push_str(&self.ids["redirections"]);
            }
        }
        Ok(uri)
    }

    /// A body that every operation that takes one can read; what it does not know it ignores.
    fn body(&self, method: &Method, path: &str) -> Result<Option<Value>> {
        if self.without_body.contains(&format!("{method} {path}")) {
            return Ok(None);
        }
        let own = BODIES.iter().find(|(operation, _)| *operation == format!("{method} {path}"));
        if let Some((_, text)) = own {
            return Ok(Some(serde_json::from_str(text)?));
        }
        Ok(Some(json!({
            "name": "walk", "firstName": "walk", "role": "viewer", "email": "walk@example.com",
            "password": "a long sentence is best", "activationCode": "walk", "defaultRedirectUrl": "https://example.com",
            "thngId": self.ids["thngs"], "platformId": self.ids["thngs"], "product": self.ids["products"],
        })))
    }

    async fn call(&self, api: &Api, key: &str, operation: &(Method, String), known: bool) -> Result<Answer> {
        let (method, path) = operation;
        let mut uri = self.uri(path, known)?;
        if method == Method::GET || method == Method::POST {
            uri.truncate(uri.find('?').unwrap_or(uri.len()));
        }
        if path == "/actions/{type}" && (method == Method::PUT || method == Method::DELETE) && !known {
            // The built-in types are nobody's to change.
            uri = "/actions/_unknown".to_owned();
        }
        api.call_as(key, method.clone(), &uri, self.body(method, path)?).await
    }
}

pub(super) async fn every_cell_of_the_permissions(engine: Engine) -> Result<()> {
    walk(engine, UserRights::Open).await
}

pub(super) async fn every_cell_of_the_permissions_with_own_rights(engine: Engine) -> Result<()> {
    walk(engine, UserRights::Own).await
}

/// Walks every cell where users have these rights.
async fn walk(engine: Engine, rights: UserRights) -> Result<()> {
    let api = Api::new(engine).await?;
    if rights == UserRights::Open {
        api.open_rights().await?;
    }
    let fixture = Fixture::new(&api).await?;
    let before = api.fingerprint().await?;
    let mut operations = operations()?;
    for (method, path) in &operations {
        let name = format!("{method} {path}");
        anyhow::ensure!(TABLE.iter().any(|(line, ..)| *line == name), "{name} has no line in TABLE");
    }
    for (line, ..) in TABLE {
        let is_there = operations.iter().any(|(method, path)| *line == format!("{method} {path}"));
        anyhow::ensure!(is_there, "{line} is in TABLE and no operation");
    }
    let cell = |operation: &(Method, String), kind: usize| {
        let name = format!("{} {}", operation.0, operation.1);
        let is_own_user = KINDS[kind] == "user" && rights == UserRights::Own;
        if is_own_user && NOT_WITH_OWN_RIGHTS.contains(&name.as_str()) {
            return Some('-');
        }
        TABLE.iter().find(|(line, ..)| *line == name).and_then(|(_, cells, _)| cells.chars().nth(kind))
    };
    let mut wrong = Vec::new();
    // What is refused changes nothing, be it there or not.
    for operation in &operations {
        let answer = fixture.call(&api, "", operation, true).await?;
        if answer.status != 401 {
            wrong.push(format!("{operation:?} without a key: {}", answer.status));
        }
        for (kind, key) in KINDS.into_iter().zip(&fixture.keys) {
            let index = KINDS.iter().position(|known| *known == kind).context("kind")?;
            if cell(operation, index) != Some('-') {
                continue;
            }
            for known in [true, false] {
                let answer = fixture.call(&api, key, operation, known).await?;
                if answer.status != 403 || answer.json()["code"] != 40301 {
                    wrong.push(format!("{operation:?} as {kind}: {} instead of 403", answer.status));
                }
            }
        }
    }
    assert_eq!(api.fingerprint().await?, before, "a refusal changed something");
    // What is allowed reads what is there; changes go to what nothing is, so that all is there to the end.
    operations.sort_by_key(|(_, path)| path == "/auth/all/logout");
    for operation in &operations {
        for (index, key) in fixture.keys.iter().enumerate() {
            let expected = cell(operation, index);
            if expected == Some('-') {
                continue;
            }
            let is_read = operation.0 == Method::GET;
            let answer = fixture.call(&api, key, operation, is_read).await?;
            let status = answer.status.as_u16();
            let fits = match (expected, is_read) {
                (Some('y'), true) => answer.status.is_success(),
                (Some('n'), _) => status == 404,
                (Some('x'), _) => status == 404 || status == 403,
                // A login fails for other reasons with 401.
                _ => status != 403 && (status != 401 || answer.json()["code"] == 40103),
            };
            if !fits {
                wrong.push(format!("{operation:?} as {}: {status}", KINDS[index]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// The rows of an account, table by table.
async fn rows_of(api: &Api, account: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut tables = api.fingerprint().await?;
    for rows in tables.values_mut() {
        rows.retain(|row| row.contains(account));
    }
    Ok(tables)
}

pub(super) async fn ids_of_another_tenant_are_404(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let ours = Fixture::new(&api).await?;
    let account = api.made.account.to_string();
    let before = rows_of(&api, &account).await?;
    assert!(before["thngs"].len() == 1 && before["redirections"].len() == 2);
    // The other tenant has one of everything and a key of each kind too.
    let theirs = other_keys(&api).await?;
    let mut wrong = Vec::new();
    for operation in &operations()? {
        let (method, path) = operation;
        let names_one = path.replace("{type}", "").replace("{key}", "").contains('{');
        for (kind, key) in KINDS.into_iter().zip(&theirs) {
            if path == "/auth/all/logout" {
                continue;
            }
            let answer = ours.call(&api, key, operation, true).await?;
            let status = answer.status.as_u16();
            let is_hidden = match (names_one, kind) {
                (true, "operator") => status == 404 || is_not_for_operators(path) && status == 403,
                (true, _) => status == 404 || status == 403,
                (false, _) => true,
            };
            let told = String::from_utf8_lossy(&answer.bytes);
            let leaks =
                answer.status.is_success() && ours.ids.values().any(|id| id.len() > 5 && told.contains(id));
            if !is_hidden || leaks {
                wrong.push(format!("{method} {path} as the other's {kind}: {status} {told}"));
            }
        }
    }
    // By name of the short domain too.
    let uri = format!("/redirections/{}?domain=tn.gg", ours.ids["redirections"]);
    for method in [Method::GET, Method::DELETE] {
        let answer = api.call_as(&theirs[0], method, &uri, None).await?;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rows_of(&api, &account).await?, before, "another tenant changed something");
    Ok(())
}

/// Users are made and logged in by keys of applications alone, and change their passwords by their own; the platform has
/// keys of its own.
fn is_not_for_operators(path: &str) -> bool {
    path.starts_with("/auth/evrythng/users")
        || path == "/users/{id}/password"
        || path.starts_with("/platform/")
}

/// A key of each kind of the second account.
async fn other_keys(api: &Api) -> Result<[String; 5]> {
    let create = async |uri: &str, body: Value| -> Result<Value> {
        let answer = api.call_as(&api.other_key, Method::POST, uri, Some(body)).await?;
        anyhow::ensure!(answer.status == 201, "{answer:?}");
        Ok(answer.json())
    };
    let project = text(&create("/projects", json!({"name": "p"})).await?, "id")?;
    let applications = format!("/projects/{project}/applications");
    let app = create(&applications, json!({"name": "a"})).await?;
    let uri = format!("{applications}/{}/secretKey", text(&app, "id")?);
    let secret = api.call_as(&api.other_key, Method::GET, &uri, None).await?.json();
    let public = text(&app, "appApiKey")?;
    let uri = "/auth/evrythng/users?anonymous=true";
    let user = api.call_as(&public, Method::POST, uri, Some(json!({}))).await?.json();
    let thng = create("/thngs", json!({"name": "t"})).await?;
    let thng_key = create("/auth/evrythng/thngs", json!({"thngId": thng["id"]})).await?;
    Ok([
        api.other_key.clone(),
        text(&secret, "secretApiKey")?,
        public,
        text(&user, "evrythngApiKey")?,
        text(&thng_key, "thngApiKey")?,
    ])
}

crate::on_both_engines!(
    every_cell_of_the_permissions,
    every_cell_of_the_permissions_with_own_rights,
    ids_of_another_tenant_are_404,
);
