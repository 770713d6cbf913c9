//! One of everything for the walks.

use std::collections::{BTreeMap, BTreeSet};

use ::actions::store::actions::{self, NewAction};
use anyhow::{Context, Result};
use assessment::{
    domain::{
        photo::{PhotoType, StoredPhoto},
        report::FinderReport,
    },
    store::{report_photos, reports},
};
use axum::{body::Bytes, http::Method};
use futures_util::stream;
use kernel::store::Ctx;
use oidc::{domain::identity::LinkedIdentity, store::identities};
use serde_json::{Value, json};
use shared::{
    id::{ActionId, ReportId},
    time::UnixMillis,
};
use tests::db::random16;

use super::{
    super::{Answer, Api, batches, link_changes, print_orders},
    BULK, UNKNOWN,
    bodies::{BODIES, ERASURE, JOB, REACTION, TASK, TRIGGER, WEBHOOK},
    text, without_body,
};

/// One of everything in the first account, within the reach of one key of each kind.
pub(super) struct Fixture {
    /// By the segment of a path before the id.
    pub(super) ids: BTreeMap<&'static str, String>,
    /// In the order of [`KINDS`].
    pub(super) keys: [String; 5],
    pub(super) without_body: BTreeSet<String>,
}

impl Fixture {
    pub(super) async fn new(api: &Api) -> Result<Self> {
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
        api.put(&content, json!("content")).await?;
        let thng_key = api.create("/auth/evrythng/thngs", json!({"thngId": ids["thngs"]})).await?;
        for kind in ["products", "thngs"] {
            let body = json!({"platformId": ids[kind], "defaultRedirectUrl": "https://example.com",
                "scopes": scopes});
            let made = api.post("/redirections", body).await?;
            let location = made.header("location").context("location")?.to_owned();
            let short_id = location.rsplit('/').next().context("short id")?;
            let short_id = short_id.split('?').next().unwrap_or_default().to_owned();
            ids.insert("redirections", short_id);
        }
        let job = api.post("/jobs/actions", serde_json::from_str(JOB)?).await?;
        let job = job.header("location").context("location")?.rsplit('/').next().context("id")?.to_owned();
        let tasks = format!("/batches/{}/tasks", ids["batches"]);
        let task = batches::finished(api, &tasks, serde_json::from_str(TASK)?).await?;
        // What it made belongs to nobody else of the fixture.
        let made = api.get("/thngs?filter=name=x&perPage=1").await?.json();
        api.delete(&format!("/thngs/{}", text(&made[0], "id")?)).await?;
        let webhook = api.create("/webhooks", serde_json::from_str(WEBHOOK)?).await?;
        let reaction = api.create("/reactions", serde_json::from_str(REACTION)?).await?;
        // It was never commissioned: that opens a case.
        let mut trigger: Value = serde_json::from_str(TRIGGER)?;
        trigger["thng"] = json!(ids["thngs"]);
        let asked = api.post("/authentication", trigger).await?;
        anyhow::ensure!(asked.status == 200, "{asked:?}");
        let cases = api.get("/authentication/cases").await?.json();
        let case = text(&cases[0], "id")?;
        let report = report(api, &case, &ids["thngs"]).await?;
        let erasure: Value = serde_json::from_str(ERASURE)?;
        let erasure = api.post("/privacy/erasures", erasure).await?.json();
        let order =
            json!({"source": {"list": {"thngs": [ids["thngs"]]}}, "format": "svg", "waitForEdges": "none"});
        let order = print_orders::finished(api, order).await?;
        let change = json!({"platformId": ids["thngs"], "patch": {"notes": "changed"}});
        let change = link_changes::finished(api, change).await?;
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
            ("qr", text(&order, "id")?),
            ("{file}", "manifest.csv".to_owned()),
            ("{changeId}", text(&change, "id")?),
            ("webhooks", text(&webhook, "id")?),
            ("reactions", text(&reaction, "id")?),
            ("cases", case),
            ("{report}", report.to_string()),
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
    pub(super) fn uri(&self, path: &str, known: bool) -> Result<String> {
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
    pub(super) fn body(&self, method: &Method, path: &str) -> Result<Option<Value>> {
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

    pub(super) async fn call(
        &self,
        api: &Api,
        key: &str,
        operation: &(Method, String),
        known: bool,
    ) -> Result<Answer> {
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

/// A report with a photo.
async fn report(api: &Api, case: &str, thng: &str) -> Result<ReportId> {
    let (account, app) = (api.made.account, &api.made.app);
    let created_at = app.core.clock.now();
    let report = FinderReport {
        id: ReportId::new(created_at.0, random16()?),
        short_url: "https://tn.gg/x".to_owned(),
        text: "x".to_owned(),
        mail: None,
        has_photo: true,
        created_at,
    };
    let photo = StoredPhoto { blob: format!("{account}/{}", report.id), kind: PhotoType::Png, size_bytes: 1 };
    let mut bytes = stream::iter([anyhow::Ok(Bytes::from_static(b"x"))]);
    app.catalog.blobs.write(&photo.blob, &mut bytes).await?;
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    reports::insert(&mut tx, account, (case.parse()?, thng.parse()?), &report).await?;
    report_photos::insert(&mut tx, account, report.id, &photo).await?;
    tx.commit().await?;
    Ok(report.id)
}
