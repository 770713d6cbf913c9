//! Links of another shortener against what is there: an import that is repeated changes what differs, and makes nothing twice.
//!
//! A link was imported from a short link if its custom fields say so ([`shorteners::FROM`], [`shorteners::LINK`]). Only members that
//! a row has are compared and changed.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::{BuildHasher as _, RandomState},
};

use clap::ValueEnum;
use reqwest::{StatusCode, Url, header::HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::domain_paths::PathPrefix;
use shorteners::Source;

use super::{
    chunks::{Outcome, Row},
    existing::{self, Code, missing},
    things::escaped,
};
use crate::tools::client::{Client, RequestError};

/// Identifier of the product that has the imported links; its value is the name of the other service.
const IDENTIFIER: &str = "importedFrom";

/// Members that say which link it is, not what it does.
const NAMES: [&str; 2] = ["shortId", "platformId"];

/// What to do with a link whose short id is that of another link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OnConflict {
    /// Reject the row.
    Refuse,
    /// Leave the row out.
    Skip,
    /// Give the link a new short id.
    Rename,
}

/// A redirection as the API shows it.
type Record = Map<String, Value>;

#[derive(Debug, Deserialize)]
struct Id {
    id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Domain {
    domain: String,
    path_prefix: Option<PathPrefix>,
}

/// Where links of another shortener go.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) client: Client,
    pub(super) source: Source,
    pub(super) on_conflict: OnConflict,
    pub(super) domain: Option<String>,
    /// The prefix of the domain: of a code that begins with it the short id stands behind it.
    pub(super) prefix: Option<PathPrefix>,
    pub(super) project: Option<String>,
    /// The resource of the links; `None` in a dry run that would make it.
    pub(super) platform_id: Option<String>,
    pub(super) dry_run: bool,
}

/// Which lines of the file had which short id and short link. Memory: about 80 bytes for each row.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// By hashes of short ids in upper case.
    ids: HashMap<u64, u64>,
    /// By hashes of short links.
    links: HashMap<u64, u64>,
    hasher: RandomState,
}

/// An earlier row of the file that has the short id of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Twin {
    line: u64,
    /// Whether the short link is the same, too.
    is_same_link: bool,
}

impl Seen {
    /// Notes a row; gives the earlier one with its short id, if there is one.
    pub(super) fn note(&mut self, row: &Row) -> Option<Twin> {
        let line = row.line;
        let link = self.hasher.hash_one(link_of(&row.item.body));
        if let Some(line) = earlier(&mut self.links, link, line) {
            return Some(Twin { line, is_same_link: true });
        }
        let id = self.hasher.hash_one(text_of(&row.item.body, "shortId").to_ascii_uppercase());
        earlier(&mut self.ids, id, line).map(|line| Twin { line, is_same_link: false })
    }
}

fn earlier(known: &mut HashMap<u64, u64>, hash: u64, line: u64) -> Option<u64> {
    match known.entry(hash) {
        Entry::Occupied(entry) => Some(*entry.get()),
        Entry::Vacant(entry) => {
            entry.insert(line);
            None
        }
    }
}

impl Moving {
    /// Finds the product of the links, or makes it unless this is a dry run; `run` is the name of the import.
    pub(super) async fn find_owner(&mut self, run: &str) -> Result<(), RequestError> {
        if let Some(id) = &self.platform_id {
            // Else the creates say it.
            if self.dry_run && !missing(&self.client, HashSet::from([id.clone()])).await?.is_empty() {
                let text = format!("platformId {id} names nothing.");
                return Err(RequestError::Refused { status: StatusCode::NOT_FOUND, text });
            }
            return Ok(());
        }
        let name = format!("{IDENTIFIER}:{}", self.source.name());
        let found = self.client.read::<Id>(&self.client.url(&["products", name.as_str()], [])).await;
        self.platform_id = match found {
            Ok(product) => Some(product.id),
            Err(RequestError::Refused { status: StatusCode::NOT_FOUND, .. }) if self.dry_run => None,
            Err(RequestError::Refused { status: StatusCode::NOT_FOUND, .. }) => {
                let body = json!({
                    "name": format!("Links from {}", self.source.name()),
                    "identifiers": {IDENTIFIER: self.source.name()},
                });
                let project = self.project.as_deref().map(|project| ("project", project));
                let (url, key) = (self.client.url(&["products"], project), format!("import-{run}-product"));
                Some(self.client.post_once::<Id>(&url, &key, body.to_string().into()).await?.id)
            }
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Finds the prefix of the domain, where the key may read it.
    pub(super) async fn find_prefix(&mut self) -> Result<(), RequestError> {
        let domains = match domains(&self.client).await {
            Ok(domains) => domains,
            Err(RequestError::Refused { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let is_meant = |one: &Domain| Some(&one.domain) == self.domain.as_ref();
        self.prefix = domains.into_iter().find(is_meant).and_then(|domain| domain.path_prefix);
        Ok(())
    }

    /// Says whose link it is to be, and its short id.
    pub(super) fn assign(&self, body: &mut Map<String, Value>) {
        let behind = self.prefix.as_ref().and_then(|prefix| prefix.cut(text_of(body, "shortId"), false));
        if let Some(short_id) = behind.map(str::to_owned) {
            body.insert("shortId".to_owned(), short_id.into());
        }
        if let Some(id) = &self.platform_id {
            body.insert("platformId".to_owned(), id.as_str().into());
        }
    }

    /// What becomes of a row whose short id an earlier row has; `key` is the chunk's.
    pub(super) async fn settle_twin(
        &self,
        row: &Row,
        twin: Twin,
        key: &str,
    ) -> Result<Outcome, RequestError> {
        if twin.is_same_link {
            return Ok(Outcome::Refused(format!("line {} has the same short link.", twin.line)));
        }
        let id = text_of(&row.item.body, "shortId");
        let reason =
            format!("shortId {id} is that of line {}; upper and lower case are the same.", twin.line);
        self.settle_conflict(row, key, reason).await
    }

    /// What becomes of a row whose short id may be taken: the service refused it for that, or was not asked.
    pub(super) async fn settle(
        &self,
        row: &Row,
        key: &str,
        refusal: Option<String>,
    ) -> Result<Outcome, RequestError> {
        let url = self.url(Some(text_of(&row.item.body, "shortId")), None);
        match self.client.read_tagged::<Record>(&url).await {
            Ok((found, tag)) if self.is_import(&found, row) => self.update(row, &found, tag).await,
            Ok((found, _)) => {
                let (url, target) = (text_of(&found, "shortUrl"), text_of(&found, "defaultRedirectUrl"));
                self.settle_conflict(row, key, format!("{url} is there already, and leads to {target}."))
                    .await
            }
            Err(RequestError::Refused { status: StatusCode::NOT_FOUND, .. }) => match refusal {
                None => Ok(Outcome::New),
                // Short ids of deleted links, and of links that the key does not see.
                Some(refusal) => self.settle_conflict(row, key, refusal).await,
            },
            Err(error) => of_the_row(error),
        }
    }

    async fn settle_conflict(&self, row: &Row, key: &str, reason: String) -> Result<Outcome, RequestError> {
        match self.on_conflict {
            OnConflict::Refuse => Ok(Outcome::Refused(reason)),
            OnConflict::Skip => Ok(Outcome::Skipped(reason)),
            OnConflict::Rename => self.rename(row, key).await,
        }
    }

    /// Gives a link a new short id, unless an earlier import did.
    async fn rename(&self, row: &Row, key: &str) -> Result<Outcome, RequestError> {
        let link = link_of(&row.item.body);
        let filter = format!("customFields.{}={}", shorteners::LINK, escaped(link));
        let found = self.client.read::<Vec<Record>>(&self.url(None, Some(("filter", filter.as_str())))).await;
        let found = match found {
            Ok(found) => found,
            Err(error) => return of_the_row(error),
        };
        if let Some(found) = found.iter().find(|found| self.is_import(found, row)) {
            // A list has no tags.
            let url = self.url(Some(text_of(found, "shortId")), None);
            return match self.client.read_tagged::<Record>(&url).await {
                Ok((found, tag)) => self.update(row, &found, tag).await,
                Err(error) => of_the_row(error),
            };
        }
        if self.dry_run {
            return Ok(Outcome::New);
        }
        let mut body = row.item.body.clone();
        body.remove("shortId");
        let project = self.project.as_deref().map(|project| ("project", project));
        let (url, key) = (self.url(None, project), format!("{key}-{}", row.line));
        match self.client.post_once::<Code>(&url, &key, Value::Object(body).to_string().into()).await {
            Ok(code) => Ok(Outcome::Created(code)),
            Err(error) => of_the_row(error),
        }
    }

    /// Makes a link that was imported before what its row says, unless somebody has changed it since it was read with this tag.
    async fn update(
        &self,
        row: &Row,
        found: &Record,
        tag: Option<HeaderValue>,
    ) -> Result<Outcome, RequestError> {
        let code = Code {
            short_id: text_of(found, "shortId").to_owned(),
            short_url: text_of(found, "shortUrl").to_owned(),
        };
        let Some(body) = change(&row.item.body, found) else { return Ok(Outcome::There(code)) };
        if self.dry_run {
            return Ok(Outcome::Changed(code));
        }
        let url = self.url(Some(&code.short_id), None);
        match self.client.put(&url, tag.as_ref(), Value::Object(body).to_string().into()).await {
            Ok(()) => Ok(Outcome::Changed(code)),
            Err(error @ RequestError::Refused { status: StatusCode::PRECONDITION_FAILED, .. }) => {
                // Maybe by a try whose answer was lost.
                match self.client.read::<Record>(&url).await {
                    Ok(now) if change(&row.item.body, &now).is_none() => Ok(Outcome::Changed(code)),
                    Ok(_) => of_the_row(error),
                    // Somebody has deleted it.
                    Err(error) => of_the_row(error),
                }
            }
            Err(error) => of_the_row(error),
        }
    }

    /// Whether a link was imported from the short link of a row.
    fn is_import(&self, found: &Record, row: &Row) -> bool {
        let fields = found.get("customFields").and_then(Value::as_object);
        let is_source =
            |fields: &&Map<String, Value>| text_of(fields, shorteners::FROM) == self.source.name();
        fields
            .filter(is_source)
            .is_some_and(|fields| is_same_link(text_of(fields, shorteners::LINK), link_of(&row.item.body)))
    }

    /// The URL of a redirection, or of all.
    fn url(&self, short_id: Option<&str>, more: Option<(&str, &str)>) -> Url {
        let path: Vec<&str> = std::iter::once("redirections").chain(short_id).collect();
        let domain = self.domain.as_deref().map(|domain| ("domain", domain));
        self.client.url(&path, domain.into_iter().chain(more))
    }
}

/// A refusal of one row; other errors end the import.
fn of_the_row(error: RequestError) -> Result<Outcome, RequestError> {
    match error {
        RequestError::Refused {
            status:
                StatusCode::BAD_REQUEST
                | StatusCode::NOT_FOUND
                | StatusCode::CONFLICT
                | StatusCode::PRECONDITION_FAILED,
            text,
        } => Ok(Outcome::Refused(text)),
        error @ (RequestError::Refused { .. } | RequestError::Unreachable(_)) => Err(error),
    }
}

/// The body of a `PUT` that makes a link what a row says; `None` if it is that already.
fn change(row: &Map<String, Value>, found: &Record) -> Option<Map<String, Value>> {
    let kept = ["forwardQuery", "scopes"].into_iter();
    let kept = kept.filter_map(|name| Some((name.to_owned(), found.get(name)?.clone())));
    let mut body: Map<String, Value> = kept.collect();
    let mut differs = false;
    for (name, value) in row.iter().filter(|(name, _)| !NAMES.contains(&name.as_str())) {
        let mut value = value.clone();
        if let (Value::Object(fields), Some(before)) =
            (&mut value, found.get(name).and_then(Value::as_object))
        {
            for (field, before) in before {
                fields.entry(field.as_str()).or_insert_with(|| before.clone());
            }
        }
        differs |= found.get(name) != Some(&value);
        body.insert(name.clone(), value);
    }
    differs.then_some(body)
}

/// Whether two short links are one; CSV of some services has the code without its host.
fn is_same_link(one: &str, other: &str) -> bool {
    let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|host| host.ends_with('/'));
    !one.is_empty() && !other.is_empty() && (one == other || ends(one, other) || ends(other, one))
}

/// The short domains of the account of the key.
async fn domains(client: &Client) -> Result<Vec<Domain>, RequestError> {
    match existing::account(client).await? {
        Some(account) => client.read(&client.url(&["accounts", &account, "domains"], [])).await,
        None => Ok(Vec::new()),
    }
}

/// The short link of a row at the other service.
fn link_of(body: &Map<String, Value>) -> &str {
    body.get("customFields").and_then(Value::as_object).map_or("", |fields| text_of(fields, shorteners::LINK))
}

fn text_of<'a>(members: &'a Map<String, Value>, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_row_says_is_changed() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let found = map(json!({
            "shortId": "A", "defaultRedirectUrl": "https://e.com/", "title": "mine", "forwardQuery": false,
            "scopes": {"users": [], "projects": []}, "customFields": {"importedLink": "bit.ly/A", "own": 1},
        }));
        let row = map(json!({"shortId": "a", "defaultRedirectUrl": "https://e.com/", "platformId": "P",
            "customFields": {"importedLink": "bit.ly/A"}}));
        assert_eq!(change(&row, &found), None);
        let mut corrected = row;
        corrected.insert("defaultRedirectUrl".to_owned(), json!("https://e.com/new"));
        let body = json!({"defaultRedirectUrl": "https://e.com/new", "forwardQuery": false,
            "scopes": {"users": [], "projects": []}, "customFields": {"importedLink": "bit.ly/A", "own": 1}});
        assert_eq!(change(&corrected, &found).map(Value::Object), Some(body));
    }

    #[test]
    fn a_link_is_known_with_and_without_its_host() {
        for (one, other, same) in [
            ("bit.ly/a", "bit.ly/a", true),
            ("a", "s.example/a", true),
            ("bit.ly/a", "bit.ly/A", false),
            ("bit.ly/a", "go.example/a", false),
            ("a", "s.example/ba", false),
            ("", "a", false),
        ] {
            assert!(is_same_link(one, other) == same && is_same_link(other, one) == same, "{one} {other}");
        }
    }
}
