//! The document of a scan in columns, and back.
//!
//! What many scans share (the browser, the place, the referer, the rest of the document) becomes a text that is stored
//! once in a month for each account; what differs is a column. A document is taken only if it comes back as it was.

mod serial;

use std::net::IpAddr;

use kernel::{
    domain::{device, facets},
    store::facets::ACTIONS,
};
use serde_json::{Map, Value, json};
use shared::id::ProductId;

const CONTEXT: &str = "context";
const CUSTOM: &str = "customFields";
const SHORT_ID: &str = "shortId";
const ENTRY_URL: &str = "entryUrl";
const ADDRESS: &str = "ipAddress";
const REACTIONS: &str = "reactions";
const REDIRECT_URL: &str = "redirectUrl";

/// Members of the context that follow from the browser.
const AGENT: [&str; 4] = ["userAgent", device::MEMBER, "userAgentName", "operatingSystemName"];
/// Members of the context that follow from the address.
const PLACE: [&str; 4] = ["city", "region", "countryCode", "timeZone"];
/// Members of the document that follow from the address.
const LOCATION: [&str; 2] = ["location", "locationSource"];

/// What a shared text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The rest of the document, with the product and the beginning of the entry URL.
    Shape,
    /// The browser.
    Agent,
    /// The place of the address.
    Place,
    /// The referer.
    Referer,
    /// The language.
    Language,
    /// The rule that fired.
    Rule,
}

impl Kind {
    /// As it is stored.
    #[must_use]
    pub const fn number(self) -> i16 {
        match self {
            Self::Shape => 0,
            Self::Agent => 1,
            Self::Place => 2,
            Self::Referer => 3,
            Self::Language => 4,
            Self::Rule => 5,
        }
    }

    /// What is kept of a text where its account has too many of its kind in a month.
    #[must_use]
    pub fn reduced(self, text: &str) -> Option<String> {
        match self {
            Self::Agent => {
                let mut agent = object(text)?;
                agent.remove("userAgent");
                agent.remove(device::MEMBER);
                text_of(agent)
            }
            Self::Referer | Self::Language => None,
            Self::Shape | Self::Place | Self::Rule => Some(text.to_owned()),
        }
    }

    /// Reads the stored form.
    #[must_use]
    pub fn stored(number: i16) -> Option<Self> {
        let all = [Self::Shape, Self::Agent, Self::Place, Self::Referer, Self::Language, Self::Rule];
        all.into_iter().find(|kind| kind.number() == number)
    }

    /// What is left of a text when everything is taken out of it that may tell of a person.
    #[must_use]
    pub fn erased(self, text: &str) -> String {
        match self {
            Self::Agent => self.reduced(text).unwrap_or_else(|| "{}".to_owned()),
            Self::Place => {
                let Some(mut place) = object(text) else { return "{}".to_owned() };
                if place.remove("location").is_some() {
                    place.insert("locationSource".to_owned(), "unknown".into());
                }
                Value::Object(place).to_string()
            }
            Self::Referer | Self::Language => String::new(),
            Self::Shape | Self::Rule => text.to_owned(),
        }
    }

    /// The facets by which scans with a text are found.
    #[must_use]
    pub fn facets(self, text: &str) -> Vec<String> {
        let value = match self {
            Self::Shape | Self::Place => serde_json::from_str::<Value>(text).unwrap_or_default(),
            Self::Agent | Self::Referer | Self::Language | Self::Rule => return Vec::new(),
        };
        let mut found = facets::of(value.get("rest").unwrap_or(&value), ACTIONS);
        if let Some(product) = value.get("product").and_then(Value::as_str) {
            found.push(facets::facet("product", product));
        }
        found
    }
}

/// A document in columns; texts are those that scans share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// [`Kind::Shape`].
    pub shape: String,
    /// [`Kind::Agent`].
    pub agent: Option<String>,
    /// [`Kind::Place`].
    pub place: Option<String>,
    /// [`Kind::Referer`].
    pub referer: Option<String>,
    /// [`Kind::Language`].
    pub language: Option<String>,
    /// [`Kind::Rule`].
    pub rule: Option<String>,
    /// The client's address, in 4 or 16 bytes.
    pub ip: Option<Vec<u8>>,
    /// The short id of the link.
    pub short_id: Option<String>,
    /// What differs of the entry URL from its beginning and the short id; see [`entry_url`].
    pub entry: Option<String>,
    /// Where the rule led.
    pub redirect_url: Option<String>,
}

impl Columns {
    /// Splits a document; `None` when it would not come back as it is.
    #[must_use]
    pub fn of(product: Option<ProductId>, doc: &Map<String, Value>) -> Option<Self> {
        let mut columns = Self::default();
        let mut rest = doc.clone();
        let mut place = Map::new();
        if let Some(Value::Object(context)) = rest.get_mut(CONTEXT) {
            columns.ip = context.get(ADDRESS).and_then(address);
            if columns.ip.is_some() {
                context.remove(ADDRESS);
            }
            columns.agent = text_of(take(context, &AGENT));
            columns.referer = take_shared(context, "referer");
            columns.language = take_shared(context, "language");
            let found = take(context, &PLACE);
            if !found.is_empty() {
                place.insert(CONTEXT.to_owned(), Value::Object(found));
            }
        }
        place.extend(take(&mut rest, &LOCATION));
        columns.place = text_of(place);
        if let Some(Value::Object(custom)) = rest.get_mut(CUSTOM) {
            columns.short_id = take_text(custom, SHORT_ID);
        }
        let mut prefix = None;
        if let Some(Value::Object(context)) = rest.get_mut(CONTEXT)
            && let Some(url) = take_text(context, ENTRY_URL)
        {
            (prefix, columns.entry) = split_entry(&url, columns.short_id.as_deref());
            serial::take(&mut rest, &url);
        }
        columns.split_rule(&mut rest);
        // Lists compare the numbers of custom fields, which the columns do not hold.
        if rest.get(CUSTOM).and_then(Value::as_object).is_some_and(|all| all.values().any(Value::is_number)) {
            return None;
        }
        columns.shape = json!({"rest": rest, "product": product, "prefix": prefix}).to_string();
        let (again, back) = columns.document()?;
        (again == product && back == *doc).then_some(columns)
    }

    /// The product and the document.
    #[must_use]
    pub fn document(&self) -> Option<(Option<ProductId>, Map<String, Value>)> {
        let Value::Object(mut shape) = serde_json::from_str(&self.shape).ok()? else { return None };
        let product = match shape.get("product") {
            Some(Value::String(text)) => Some(text.parse().ok()?),
            _ => None,
        };
        let prefix = shape.get("prefix").and_then(Value::as_str).map(str::to_owned);
        let Some(Value::Object(mut doc)) = shape.remove("rest") else { return None };
        let mut context = Map::new();
        if let Some(ip) = &self.ip {
            context.insert(ADDRESS.to_owned(), address_text(ip)?.into());
        }
        if let Some(text) = &self.agent {
            context.extend(object(text)?);
        }
        for (name, text) in [("referer", &self.referer), ("language", &self.language)] {
            // An empty one is what is left of a text that was erased.
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                context.insert(name.to_owned(), text.as_str().into());
            }
        }
        if let Some(text) = &self.place {
            let mut place = object(text)?;
            if let Some(Value::Object(found)) = place.remove(CONTEXT) {
                context.extend(found);
            }
            doc.extend(place);
        }
        if let Some(url) = entry_url(prefix.as_deref(), self.short_id.as_deref(), self.entry.as_deref()) {
            serial::put_back(&mut doc, &url)?;
            context.insert(ENTRY_URL.to_owned(), url.into());
        }
        if !context.is_empty() {
            member(&mut doc, CONTEXT)?.extend(context);
        }
        if let Some(short_id) = &self.short_id {
            member(&mut doc, CUSTOM)?.insert(SHORT_ID.to_owned(), short_id.as_str().into());
        }
        if let Some(rule) = &self.rule {
            let mut reaction = object(rule)?;
            if let Some(url) = &self.redirect_url {
                reaction.insert(REDIRECT_URL.to_owned(), url.as_str().into());
            }
            doc.insert(REACTIONS.to_owned(), json!([reaction]));
        }
        Some((product, doc))
    }

    /// The shared texts with their kinds.
    pub fn texts(&self) -> impl Iterator<Item = (Kind, &str)> {
        let optional = [
            (Kind::Agent, &self.agent),
            (Kind::Place, &self.place),
            (Kind::Referer, &self.referer),
            (Kind::Language, &self.language),
            (Kind::Rule, &self.rule),
        ];
        let optional = optional.into_iter().filter_map(|(kind, text)| Some((kind, text.as_deref()?)));
        std::iter::once((Kind::Shape, self.shape.as_str())).chain(optional)
    }

    /// The one reaction of a redirect by a rule; where it led may differ for each link.
    fn split_rule(&mut self, doc: &mut Map<String, Value>) {
        let Some(Value::Array(reactions)) = doc.get(REACTIONS) else { return };
        let [Value::Object(reaction)] = reactions.as_slice() else { return };
        let mut reaction = reaction.clone();
        self.redirect_url = take_text(&mut reaction, REDIRECT_URL);
        self.rule = Some(Value::Object(reaction).to_string());
        doc.remove(REACTIONS);
    }
}

/// The beginning of an entry URL up to its path, and what differs of the rest from the short id: nothing, what follows
/// it, or a path without it. Without a beginning it is the whole URL.
fn split_entry(url: &str, short_id: Option<&str>) -> (Option<String>, Option<String>) {
    let host = url.find("://").map(|at| at + 3);
    let path = host.and_then(|host| url[host..].find('/').map(|at| host + at + 1));
    let (Some(path), Some(short_id)) = (path, short_id) else { return (None, Some(url.to_owned())) };
    let (prefix, path) = url.split_at(path);
    let entry = match path.strip_prefix(short_id) {
        Some("") => None,
        Some(after) if follows(after) => Some(after),
        _ if path.is_empty() || follows(path) => return (None, Some(url.to_owned())),
        _ => Some(path),
    };
    (Some(prefix.to_owned()), entry.map(str::to_owned))
}

/// The URL that [`split_entry`] took apart.
fn entry_url(prefix: Option<&str>, short_id: Option<&str>, entry: Option<&str>) -> Option<String> {
    match (prefix, entry) {
        (None, entry) => entry.map(str::to_owned),
        (Some(prefix), None) => Some(format!("{prefix}{}", short_id.unwrap_or_default())),
        (Some(prefix), Some(after)) if follows(after) => {
            Some(format!("{prefix}{}{after}", short_id.unwrap_or_default()))
        }
        (Some(prefix), Some(path)) => Some(format!("{prefix}{path}")),
    }
}

/// Whether a text is what follows a short id in a URL.
fn follows(text: &str) -> bool {
    text.starts_with(['?', '#', '/', '&'])
}

fn take(members: &mut Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    names.iter().filter_map(|name| members.remove(*name).map(|value| ((*name).to_owned(), value))).collect()
}

fn take_text(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    members.get(name)?.as_str()?;
    match members.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A text that scans share; an empty one is none.
fn take_shared(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    members.get(name)?.as_str().filter(|text| !text.is_empty())?;
    take_text(members, name)
}

fn text_of(members: Map<String, Value>) -> Option<String> {
    (!members.is_empty()).then(|| Value::Object(members).to_string())
}

fn object(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text).ok()? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// A member that is an object, made where it is missing.
fn member<'a>(doc: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    doc.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

fn address(value: &Value) -> Option<Vec<u8>> {
    Some(match value.as_str()?.parse::<IpAddr>().ok()? {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    })
}

fn address_text(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok().map(|ip| ip.to_string())
}

#[cfg(test)]
mod tests;
