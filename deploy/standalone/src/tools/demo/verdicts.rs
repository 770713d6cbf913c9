//! Asks for the verdicts of the demo: on every item that something is wrong with, and on some that are genuine.

use std::{cell::RefCell, collections::BTreeMap};

use serde_json::{Value, json};

use super::{
    fill::{Filling, Ids},
    items::{Item, Story},
    mark::text,
};
use crate::tools::client::RequestError;

/// Items that are sold at home and asked about, at most.
const GENUINE: usize = 200;

/// The verdicts that every demo has.
pub(super) const PROMISED: [&str; 4] = ["positive", "suspicious", "negative", "unknown"];

/// The verdicts of items, by their ids.
pub(super) type Judged = BTreeMap<String, String>;

/// How many items have which verdict.
pub(super) type Verdicts = BTreeMap<String, usize>;

/// Has the items judged that were not, each by its last scan; gives the verdicts of all of them.
pub(super) async fn ask(filling: &Filling<'_>, things: &Ids, scans: &Ids) -> Result<Judged, RequestError> {
    let asked = asked(filling.items).into_iter().filter_map(|item| {
        let scan = scans.get(&item.judged_by()?.name)?;
        Some((things.get(&item.serial)?.as_str(), scan.as_str()))
    });
    let asked: Vec<(&str, &str)> = asked.collect();
    let verdicts = RefCell::new(Judged::new());
    let requests = asked.iter().map(async |(thing, scan)| {
        let result = match judged(filling, thing).await? {
            Some(result) => result,
            // What it lacks follows from the stored scan.
            None => {
                let body = json!({"id": scan, "thng": thing});
                let url = filling.client.url(&["authentication"], []);
                filling.demo.post(filling.client, &url, &body).await?
            }
        };
        let verdict = text(&result["customFields"], "authenticationStatus").to_owned();
        verdicts.borrow_mut().insert((*thing).to_owned(), verdict);
        Ok(1)
    });
    filling.shown.run("verdicts", asked.len(), requests).await?;
    Ok(verdicts.into_inner())
}

/// How many of each there are.
pub(super) fn counted(judged: &Judged) -> Verdicts {
    let mut verdicts = Verdicts::new();
    for verdict in judged.values() {
        *verdicts.entry(verdict.clone()).or_default() += 1;
    }
    verdicts
}

/// The items that are asked about.
fn asked(items: &[Item]) -> Vec<&Item> {
    let suspect = items.iter().filter(|item| item.story.is_suspect());
    let genuine = items.iter().filter(|item| item.story == Story::Sold).take(GENUINE);
    suspect.chain(genuine).collect()
}

/// The result of an item that an earlier run asked about.
async fn judged(filling: &Filling<'_>, thing: &str) -> Result<Option<Value>, RequestError> {
    let path = ["thngs", thing, "actions", "authenticationResults"];
    let url = filling.client.url(&path, [("perPage", "1")]);
    let (results, _): (Vec<Value>, _) = filling.client.read_page(&url).await?;
    Ok(results.into_iter().next())
}
