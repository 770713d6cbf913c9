//! Makes the items of the demo with their links, and tells their stories. Each step looks at what is there and makes the
//! rest, so that a run goes on where another one was cut short.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    brand::Brand,
    items::{Item, Scan},
    mark::{Demo, FIELD, TAG, list, text},
    shown::Shown,
    world::{FACTORIES, PRODUCTS, user_agent},
};
use crate::tools::client::{Client, RequestError};

/// Rows of a request: some 400 bytes each, in transactions that hold nobody up for long.
const BULK: usize = 200;

/// Time from encoding an item to its commissioning.
const ENCODED_BEFORE_MS: i64 = 60 * 60 * 1_000;

/// What a run works with.
pub(super) struct Filling<'a> {
    /// The operator's.
    pub(super) client: &'a Client,
    /// That of the application which reports scans.
    pub(super) application: &'a Client,
    pub(super) demo: &'a Demo,
    pub(super) brand: &'a Brand,
    pub(super) shown: &'a Shown,
    pub(super) items: &'a [Item],
}

/// One result of a request that makes many.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    status: u16,
    #[serde(default)]
    id: String,
    #[serde(default)]
    errors: Vec<String>,
}

/// Ids by what things are called in the demo.
pub(super) type Ids = HashMap<String, String>;

impl Filling<'_> {
    /// Makes the items; gives the ids of all of them by their serials.
    pub(super) async fn things(&self) -> Result<Ids, RequestError> {
        let there = self.demo.list(self.client, &["thngs"]).await?;
        let serial = |thing: &Value| text(&thing["identifiers"], "gs1:21").to_owned();
        let ids: Ids = there.iter().map(|thing| (serial(thing), text(thing, "id").to_owned())).collect();
        let missing: Vec<&Item> = self.items.iter().filter(|item| !ids.contains_key(&item.serial)).collect();
        let ids = RefCell::new(ids);
        let url = self.demo.url(self.client, &["thngs"]);
        let requests = missing.chunks(BULK).map(async |items| {
            let body: Value = items.iter().map(|item| self.thing(item)).collect();
            let made: Vec<Made> = self.demo.post(self.client, &url, &body).await?;
            check(&made, items.len())?;
            let named = items.iter().zip(made).map(|(item, made)| (item.serial.clone(), made.id));
            ids.borrow_mut().extend(named);
            Ok(items.len())
        });
        self.shown.run("items", missing.len(), requests).await?;
        Ok(ids.into_inner())
    }

    fn thing(&self, item: &Item) -> Value {
        let (_, product) = &self.brand.products[item.product];
        let name = format!("{} {}", PRODUCTS[item.product].name, item.serial);
        let mut tags = vec![TAG];
        if item.story == super::items::Story::Recalled {
            tags.push("recalled");
        }
        json!({"name": name, "product": product, "identifiers": {"gs1:21": item.serial}, "tags": tags,
            "customFields": {FIELD: item.serial, "factory": FACTORIES[item.factory].factory}})
    }

    /// Makes a short link for each item.
    pub(super) async fn links(&self, things: &Ids) -> Result<(), RequestError> {
        let there = self.demo.list(self.client, &["redirections"]).await?;
        let linked: HashSet<&str> = there.iter().map(|link| text(link, "platformId")).collect();
        let has_none =
            |item: &&Item| things.get(&item.serial).is_some_and(|id| !linked.contains(id.as_str()));
        let missing: Vec<&Item> = self.items.iter().filter(has_none).collect();
        let url = self.demo.url(self.client, &["redirections"]);
        let requests = missing.chunks(BULK).map(async |items| {
            let link = |item: &&Item| {
                json!({"platformId": things.get(&item.serial), "defaultRedirectUrl": self.demo.mark.target,
                    "title": PRODUCTS[item.product].name, "tags": [TAG], "customFields": {FIELD: item.serial}})
            };
            let body: Value = items.iter().map(link).collect();
            let made: Vec<Made> = self.demo.post(self.client, &url, &body).await?;
            check(&made, items.len())?;
            Ok(items.len())
        });
        self.shown.run("links", missing.len(), requests).await
    }

    /// Encodes and commissions the items that the factories declare.
    pub(super) async fn commissions(&self, things: &Ids) -> Result<(), RequestError> {
        let declared = self.items.iter().filter_map(|item| Some((item, item.commissioned_at?)));
        let declared: Vec<(&Item, i64)> = declared.collect();
        let encoded = self.actions("encodings", things).await?;
        let missing = declared.iter().filter(|(item, _)| !encoded.contains_key(&item.serial));
        let missing: Vec<Value> = missing
            .map(|(item, at)| {
                json!({"thng": things.get(&item.serial), "timestamp": at - ENCODED_BEFORE_MS, "tags": [TAG],
                    "customFields": {FIELD: item.serial}})
            })
            .collect();
        self.record("encodings", self.client, "encodings", missing).await?;

        let open = self.not_commissioned(&declared).await?;
        let requests = open.iter().map(async |(item, at)| {
            let id = things.get(&item.serial).map_or("", String::as_str);
            let factory = FACTORIES[item.factory].factory;
            let body = json!({"product": self.brand.products[item.product].1,
                "location": {"place": self.brand.places[item.factory]}, "occurredAt": iso(*at),
                "purchaseOrder": format!("PO-{}", PRODUCTS[item.product].category),
                "factoryMetadata": {"factory": factory}});
            let url = self.client.url(&["thngs", id, "actions", "commissions"], []);
            self.demo.post::<Value>(self.client, &url, &body).await?;
            Ok(1)
        });
        self.shown.run("commissions", open.len(), requests).await
    }

    /// Those of some items that are not commissioned.
    async fn not_commissioned<'i>(
        &self,
        items: &[(&'i Item, i64)],
    ) -> Result<Vec<(&'i Item, i64)>, RequestError> {
        let url = self.client.url(&["thngs", "commissionStateList"], []);
        let mut open = Vec::new();
        for items in items.chunks(BULK) {
            let pair = |(item, _): &(&Item, i64)| {
                json!({"thngIdentifier": format!("gs1:21:{}", item.serial),
                    "productIdentifier": format!("gs1:01:{}", self.brand.products[item.product].0)})
            };
            let body: Value = items.iter().map(pair).collect();
            let states: Vec<Value> = self.demo.post(self.client, &url, &body).await?;
            let states = items.iter().zip(&states);
            open.extend(
                states.filter(|(_, state)| text(state, "state") == "not_commissioned").map(|(one, _)| *one),
            );
        }
        Ok(open)
    }

    /// Reports the scans; gives the ids of those of all items by what they are called.
    pub(super) async fn scans(&self, things: &Ids) -> Result<Ids, RequestError> {
        let mut ids = self.actions("scans", things).await?;
        ids.extend(self.actions("inspectorScans", things).await?);
        let (mut scans, mut inspections) = (Vec::new(), Vec::new());
        for item in self.items {
            let Some(id) = things.get(&item.serial) else { continue };
            let is_new = |scan: &&Scan| !ids.contains_key(&scan.name);
            scans.extend(item.scans.iter().filter(is_new).map(|scan| reported(id, scan)));
            inspections.extend(item.inspection.iter().filter(is_new).map(|scan| inspected(id, scan)));
        }
        // In the order of time, as they would have come.
        scans.sort_by_key(|scan| scan["timestamp"].as_i64());
        ids.extend(self.record("scans", self.application, "scans", scans).await?);
        ids.extend(self.record("inspections", self.client, "inspectorScans", inspections).await?);
        Ok(ids)
    }

    /// The demo's actions of a type that are there, by what they are called. Those of another demo are left out: they stay
    /// when its items are deleted by hand.
    async fn actions(&self, kind: &str, things: &Ids) -> Result<Ids, RequestError> {
        let known: HashSet<&str> = things.values().map(String::as_str).collect();
        let filter = format!("tags={TAG}");
        let there: Vec<Value> = list(self.client, &["actions", kind], &[("filter", filter.as_str())]).await?;
        Ok(there.iter().filter(|action| known.contains(text(action, "thng"))).map(named).collect())
    }

    /// Creates actions; gives their ids by what they are called.
    async fn record(
        &self,
        what: &str,
        client: &Client,
        kind: &str,
        actions: Vec<Value>,
    ) -> Result<Ids, RequestError> {
        let url = client.url(&["actions", kind], []);
        let ids = RefCell::new(Ids::new());
        let requests = actions.chunks(BULK).map(async |actions| {
            let made: Vec<Value> = self.demo.post(client, &url, &json!(actions)).await?;
            ids.borrow_mut().extend(made.iter().map(named));
            Ok(actions.len())
        });
        self.shown.run(what, actions.len(), requests).await?;
        Ok(ids.into_inner())
    }
}

/// What an action is called in the demo, and its id.
fn named(action: &Value) -> (String, String) {
    (text(&action["customFields"], FIELD).to_owned(), text(action, "id").to_owned())
}

/// The body of a scan that an application reports.
fn reported(thing: &str, scan: &Scan) -> Value {
    let context = json!({"ipAddress": scan.address, "userAgent": user_agent(scan.device),
        "language": scan.language});
    let mut body = json!({"thng": thing, "timestamp": scan.at, "tags": [TAG], "context": context,
        "customFields": {FIELD: scan.name}});
    if let Some((city, latitude, longitude)) = scan.place {
        body["location"] = json!({"latitude": latitude, "longitude": longitude});
        body["customFields"]["city"] = city.name.into();
        body["customFields"]["country"] = city.country.into();
    }
    body
}

/// The body of an inspector's scan, who finds another product than the code says.
fn inspected(thing: &str, scan: &Scan) -> Value {
    let mut body = reported(thing, scan);
    if let Value::Object(members) = &mut body {
        // An inspector is no customer whose phone is reported.
        members.remove("context");
    }
    body["customFields"]["inspectedProductMatch"] = "no".into();
    body
}

/// Checks that each row was made.
fn check(made: &[Made], wanted: usize) -> Result<(), RequestError> {
    if let Some(refused) = made.iter().find(|one| one.status >= 300) {
        let status = reqwest::StatusCode::from_u16(refused.status).unwrap_or_default();
        return Err(RequestError::Refused { status, text: refused.errors.join(" ") });
    }
    if made.len() == wanted {
        return Ok(());
    }
    Err(RequestError::Unreachable(format!("{} results came for {wanted} rows", made.len())))
}

/// A time as ISO 8601 in UTC.
fn iso(at: i64) -> String {
    jiff::Timestamp::from_millisecond(at).unwrap_or_default().to_string()
}
