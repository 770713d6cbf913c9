//! Things that an import makes: rows with a serial (`gs1:21`) instead of the id of a resource.
//!
//! A Thing is found by its serial, and its product where the row names one; only what is not found is made. So
//! a second run of a file makes none.

use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt as _, stream};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Map, json};

use super::rows::{Named, SERIAL};
use crate::tools::client::{Client, RequestError};

/// Look-ups and creates under way at once.
const PARALLEL: usize = 8;

/// Serials of one look-up: a filter has at most 64 conditions.
const BATCH: usize = 32;

/// Bytes of a look-up's filter past which no serial is added; a filter has at most 4,096.
const FILTER_BYTES: usize = 2_000;

impl Named {
    /// What tells it from others: the name does not.
    fn key(&self) -> (String, Option<String>) {
        (self.serial.clone(), self.product.clone())
    }
}

/// What became of a Thing that a row names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thing {
    /// It is there.
    There(String),
    /// It was made now.
    Made(String),
    /// It is not there, and nothing is made.
    Missing,
    /// It cannot be found or made.
    Refused(String),
}

#[derive(Debug, Deserialize)]
struct Found {
    id: String,
    #[serde(default)]
    product: Option<String>,
    #[serde(default)]
    identifiers: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Id {
    id: String,
}

/// Finds Things and makes those that are not there.
pub(super) struct Things {
    client: Client,
    /// Ids of products by how rows name them, or why they cannot be used.
    products: HashMap<String, Result<String, String>>,
}

impl Things {
    /// Knows no product yet.
    pub(super) fn new(client: Client) -> Self {
        Self { client, products: HashMap::new() }
    }

    /// The Things of some rows, in their order; `key` begins the idempotency keys of creates, `None` makes none.
    pub(super) async fn resolve(
        &mut self,
        rows: &[Option<Named>],
        key: Option<&str>,
    ) -> Result<Vec<Option<Thing>>, RequestError> {
        let mut distinct = Vec::new();
        let mut seen = HashSet::new();
        for named in rows.iter().flatten() {
            if seen.insert(named.key()) {
                distinct.push(named.clone());
            }
        }
        if distinct.is_empty() {
            return Ok(vec![None; rows.len()]);
        }
        for product in distinct.iter().filter_map(|named| named.product.as_deref()) {
            self.find_product(product).await?;
        }
        let found = find(&self.client, distinct.iter().map(|named| named.serial.as_str())).await?;
        let this = &*self;
        let settled: Vec<Result<_, RequestError>> = stream::iter(distinct.iter().enumerate())
            .map(|(at, named)| this.settle(named, &found, key.map(|key| format!("{key}-{at}"))))
            .buffered(PARALLEL)
            .collect()
            .await;
        let mut things = HashMap::new();
        for (named, thing) in distinct.iter().zip(settled) {
            things.insert(named.key(), thing?);
        }
        Ok(rows.iter().map(|row| row.as_ref().and_then(|named| things.get(&named.key()).cloned())).collect())
    }

    async fn find_product(&mut self, name: &str) -> Result<(), RequestError> {
        if self.products.contains_key(name) {
            return Ok(());
        }
        let product = match self.client.read::<Id>(&self.client.url(&["products", name], [])).await {
            Ok(product) => Ok(product.id),
            Err(RequestError::Refused { status, text }) if is_of_the_row(status) => {
                Err(format!("product {name}: {text}"))
            }
            Err(error) => return Err(error),
        };
        self.products.insert(name.to_owned(), product);
        Ok(())
    }

    async fn settle(
        &self,
        named: &Named,
        found: &HashMap<String, Vec<Found>>,
        key: Option<String>,
    ) -> Result<Thing, RequestError> {
        let product = match named.product.as_ref().map(|name| self.products.get(name)) {
            None => None,
            Some(Some(Ok(id))) => Some(id.as_str()),
            Some(Some(Err(reason))) => return Ok(Thing::Refused(reason.clone())),
            Some(None) => return Ok(Thing::Missing),
        };
        if let Some(thing) = choose(named, product, found) {
            return Ok(thing);
        }
        let Some(key) = key else { return Ok(Thing::Missing) };
        let mut body = Map::new();
        body.insert("name".to_owned(), named.name.as_deref().unwrap_or(&named.serial).into());
        body.insert("identifiers".to_owned(), json!({SERIAL: named.serial}));
        if let Some(product) = product {
            body.insert("product".to_owned(), product.into());
        }
        let body = serde_json::to_vec(&body).map_err(|error| RequestError::Unreachable(error.to_string()))?;
        match self.client.post_once::<Id>(&self.client.url(&["thngs"], []), &key, body.into()).await {
            Ok(thing) => Ok(Thing::Made(thing.id)),
            Err(RequestError::Refused { status, text }) if is_of_the_row(status) => {
                // Somebody else may have made it meanwhile.
                let again = find(&self.client, std::iter::once(named.serial.as_str())).await?;
                let refused = || Thing::Refused(format!("{SERIAL} {}: {text}", named.serial));
                Ok(choose(named, product, &again).unwrap_or_else(refused))
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether a refusal is the row's fault and not the import's.
fn is_of_the_row(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::CONFLICT)
}

/// Which of the Things with a serial a row means; `None` when none of them.
fn choose(named: &Named, product: Option<&str>, found: &HashMap<String, Vec<Found>>) -> Option<Thing> {
    let with_serial = found.get(&named.serial).map(Vec::as_slice).unwrap_or_default();
    let fits = |thing: &&Found| product.is_none() || thing.product.as_deref() == product;
    let mut fitting = with_serial.iter().filter(fits);
    let first = fitting.next()?;
    let others = fitting.count();
    if others == 0 {
        return Some(Thing::There(first.id.clone()));
    }
    let advice = if product.is_none() { "; name the product" } else { "" };
    Some(Thing::Refused(format!("{SERIAL} {} belongs to {} Thngs{advice}", named.serial, others + 1)))
}

/// The Things with some serials.
async fn find(
    client: &Client,
    serials: impl Iterator<Item = &str>,
) -> Result<HashMap<String, Vec<Found>>, RequestError> {
    let mut filters: Vec<(String, usize)> = Vec::new();
    let distinct: HashSet<&str> = serials.collect();
    for serial in distinct {
        let term = format!("identifiers.{SERIAL}={}", escaped(serial));
        match filters.last_mut() {
            Some((filter, count)) if *count < BATCH && filter.len() + term.len() < FILTER_BYTES => {
                filter.push('|');
                filter.push_str(&term);
                *count += 1;
            }
            Some(_) | None => filters.push((term, 1)),
        }
    }
    let pages: Vec<Result<Vec<Found>, RequestError>> = stream::iter(filters)
        .map(async |(filter, _)| {
            let mut next = Some(client.url(&["thngs"], [("filter", filter.as_str()), ("perPage", "100")]));
            let mut all = Vec::new();
            while let Some(url) = next {
                let (page, following) = client.read_page::<Vec<Found>>(&url).await?;
                all.extend(page);
                next = following;
            }
            Ok(all)
        })
        .buffer_unordered(PARALLEL)
        .collect()
        .await;
    let mut found: HashMap<String, Vec<Found>> = HashMap::new();
    for page in pages {
        for mut thing in page? {
            if let Some(serial) = thing.identifiers.remove(SERIAL) {
                found.entry(serial).or_default().push(thing);
            }
        }
    }
    Ok(found)
}

/// A value as a filter takes it: its signs are escaped.
pub(super) fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if "&|!><=~(),\\".contains(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}
