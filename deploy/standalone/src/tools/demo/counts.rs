//! Puts the scans of the demo into the statistics, and takes them out again: edges have not seen them.

use std::collections::{HashMap, HashSet};

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{
    fill::{Filling, Ids},
    items::{DAY_MS, Item, Scan},
    mark::{Demo, text},
    verdicts::Judged,
};
use crate::tools::client::{Client, RequestError};

/// Entries of a request; the service takes no more.
const BULK: usize = 200;

/// The operating system of all phones of the demo, as the service calls it.
const SYSTEM: &str = "Android";

/// Counts the scans of people; gives how many, or nothing where the service or the key does not allow it.
pub(super) async fn count(
    filling: &Filling<'_>,
    things: &Ids,
    judged: &Judged,
) -> Result<Option<usize>, RequestError> {
    let Filling { client, demo, shown, .. } = filling;
    // A run that was cut short may have counted some of them.
    if !remove(client, demo).await? {
        return Ok(None);
    }
    let links = demo.list(client, &["redirections"]).await?;
    let links: HashMap<&str, String> = links
        .iter()
        .map(|link| {
            (text(link, "platformId"), format!("{}/{}", text(link, "shortDomain"), text(link, "shortId")))
        })
        .collect();
    let mut scans: Vec<(&Item, &Scan)> =
        filling.items.iter().flat_map(|item| item.scans.iter().map(move |scan| (item, scan))).collect();
    scans.sort_by_key(|(_, scan)| scan.at);
    let mut known = HashSet::new();
    let entries: Vec<Value> = scans
        .iter()
        .map(|(item, scan)| {
            let thing = things.get(&item.serial).map_or("", String::as_str);
            let place = scan.place.map(|(city, ..)| city);
            let is_new = known.insert((scan.at.div_euclid(DAY_MS), scan.address, scan.device));
            json!({"timestamp": scan.at, "newDevice": is_new, "system": SYSTEM, "language": scan.language,
                "country": place.map(|city| city.country), "city": place.map(|city| city.name),
                "product": filling.brand.products.get(item.product).map(|(_, id)| id),
                "link": links.get(thing), "verdict": judged.get(thing).filter(|verdict| !verdict.is_empty())})
        })
        .collect();
    let url = url(client, demo);
    let requests = entries.chunks(BULK).map(async |entries| {
        let _: Value = demo.post(client, &url, &json!({"scans": entries})).await?;
        Ok(entries.len())
    });
    match shown.run("scans in the statistics", entries.len(), requests).await {
        // A service of an older release has no such counts.
        Err(RequestError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
        other => other.map(|()| Some(entries.len())),
    }
}

/// Takes all counts of the demo's project out of the statistics; gives whether the key may.
pub(super) async fn remove(client: &Client, demo: &Demo) -> Result<bool, RequestError> {
    match client.remove(&url(client, demo)).await {
        Err(RequestError::Refused { status: StatusCode::FORBIDDEN, .. }) => Ok(false),
        other => other.map(|()| true),
    }
}

fn url(client: &Client, demo: &Demo) -> reqwest::Url {
    client.url(&["projects", &demo.project, "scanCounts"], [])
}
