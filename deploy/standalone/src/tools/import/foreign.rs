//! Exports of other shorteners: each link of a file becomes the body of a create.
//!
//! Nothing is lost in silence: what Waymark has no member for is a custom field, or named in the report with the number
//! of links that have it. Columns that are not known are named once.

use clap::ValueEnum;
use redirects::domain::{link_details::MAX_TITLE, redirection::Writable};
use serde_json::{Map, Value};
use shared::short_id::ShortId;

use self::columns::Column;
pub(super) use self::json::{is_json, lines};
use super::{
    records::{Layout, Record},
    rows::{self, Item},
};

mod columns;
mod json;
mod values;

/// Custom field with the name of the other service; a link without it was not imported from there.
pub(super) const FROM: &str = "importedFrom";

/// Custom field with the short link at the other service, without its scheme.
pub(super) const LINK: &str = "importedLink";

/// Another shortener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Source {
    /// CSV of its export, or JSON of its API (GET /v4/groups/ID/bitlinks).
    Bitly,
    /// JSON of its API (GET /rest/v3/short-urls), or CSV of its web client.
    Shlink,
    /// CSV of its table of links, or JSON of its API (action=stats).
    Yourls,
    /// JSON of its API (GET /api/v2/links), or CSV of its table of links.
    Kutt,
    /// CSV of its export, or JSON of its API (GET /links).
    Dub,
}

impl Source {
    /// The name on the command line, and in [`FROM`].
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bitly => "bitly",
            Self::Shlink => "shlink",
            Self::Yourls => "yourls",
            Self::Kutt => "kutt",
            Self::Dub => "dub",
        }
    }
}

/// Reads the links of a file.
#[derive(Debug)]
pub(super) struct Foreign {
    source: Source,
    layout: Layout,
    /// The header as it stands in the file; empty for JSON.
    pub(super) header: Vec<String>,
    /// For each column of the file, what it says.
    columns: Vec<Option<(&'static str, Column)>>,
    /// Columns and members that are not known.
    unknown: Vec<String>,
}

impl Foreign {
    /// Links of a CSV file with this header; the error says what it lacks.
    pub(super) fn csv(source: Source, header: Option<Record>, delimiter: u8) -> Result<Self, String> {
        let header = rows::header(header, delimiter)?;
        let columns: Vec<_> = header.iter().map(|name| columns::find(source, name)).collect();
        let has = |wanted: &[Column]| columns.iter().flatten().any(|(_, column)| wanted.contains(column));
        if !has(&[Column::Target]) || !has(&[Column::Link, Column::CustomLink, Column::Code]) {
            return Err(format!(
                "the first line names no column of {} for the short link, or for its target",
                source.name()
            ));
        }
        // The first two are those that a file of rejects has.
        let unknown = header
            .iter()
            .zip(&columns)
            .filter(|(name, column)| column.is_none() && !["line", "reason"].contains(&name.as_str()));
        let unknown = unknown.map(|(name, _)| name.clone()).collect();
        Ok(Self { source, layout: Layout::Csv(delimiter), header, columns, unknown })
    }

    /// Links of a JSON file of which [`lines`] made lines.
    pub(super) const fn json(source: Source, unknown: Vec<String>) -> Self {
        Self { source, layout: Layout::Ndjson, header: Vec::new(), columns: Vec::new(), unknown }
    }

    /// Columns and members that are not read.
    pub(super) fn ignored(&self) -> Vec<&str> {
        self.unknown.iter().map(String::as_str).collect()
    }

    /// What a record asks for; the error names everything that is wrong with it.
    pub(super) fn parse(&self, record: &[u8]) -> Result<Item, String> {
        let members: Vec<(&'static str, Column, Value)> = match self.layout {
            Layout::Csv(delimiter) => {
                let values = rows::fields(record, delimiter)?;
                if values.len() != self.columns.len() {
                    let (found, expected) = (values.len(), self.columns.len());
                    return Err(format!("the line has {found} fields, the header {expected}"));
                }
                let cells = self.columns.iter().zip(values);
                cells.filter_map(|(column, text)| column.map(|(name, of)| (name, of, text.into()))).collect()
            }
            Layout::Ndjson => {
                let link = serde_json::from_slice(record)
                    .map_err(|error| format!("the link is not a JSON object: {error}"))?;
                json::members(self.source, link, |_| ())
            }
        };
        Link::read(members).into_item(self.source)
    }
}

/// The delimiter by which most columns of a header are known.
pub(super) fn delimiter(source: Source, header: &[u8]) -> u8 {
    rows::delimiter_of(header, |name| columns::find(source, name).is_some())
}

/// A link as it is read.
#[derive(Debug, Default)]
struct Link {
    link: Option<String>,
    custom: Option<String>,
    code: Option<String>,
    body: Map<String, Value>,
    fields: Map<String, Value>,
    dropped: Vec<&'static str>,
    faults: Vec<String>,
}

impl Link {
    fn read(members: Vec<(&'static str, Column, Value)>) -> Self {
        let mut link = Self::default();
        for (name, column, value) in members {
            link.take(name, column, &value);
        }
        link
    }

    fn take(&mut self, name: &'static str, column: Column, value: &Value) {
        let text = values::text(value);
        match column {
            Column::Link => self.link = text,
            Column::CustomLink => self.custom = text,
            Column::Code => self.code = text,
            Column::Target => {
                if let Some(text) = text {
                    self.set("defaultRedirectUrl", values::target(&text).into());
                }
            }
            Column::Title => {
                if let Some(mut text) = text {
                    if let Some((end, _)) = text.char_indices().nth(MAX_TITLE) {
                        text.truncate(end);
                        self.dropped.push("title behind 200 characters");
                    }
                    self.set("title", text.into());
                }
            }
            Column::Tags => {
                let tags = values::tags(value);
                if !tags.is_empty() {
                    self.set("tags", tags.into());
                }
            }
            Column::Notes => {
                if let Some(text) = text {
                    self.set("notes", text.into());
                }
            }
            Column::Created => {
                if let Some(text) = text {
                    let at = values::millis(&text).map_or_else(|| text.into(), Value::from);
                    self.fields.insert("importedCreatedAt".to_owned(), at);
                }
            }
            Column::From => self.take_time("validFrom", name, text),
            Column::Until => self.take_time("validUntil", name, text),
            Column::EndedUrl => {
                if let Some(text) = text {
                    self.set("endedUrl", values::target(&text).into());
                }
            }
            Column::ForwardQuery => self.set("forwardQuery", values::says(value).into()),
            Column::Clicks => {
                if let Some(text) = text {
                    let clicks = text.parse::<i64>().map_or_else(|_| text.into(), Value::from);
                    self.fields.insert("importedClicks".to_owned(), clicks);
                }
            }
            Column::Paused => {
                if values::says(value) {
                    self.set("status", "paused".into());
                }
            }
            Column::Password => {
                if values::says(value) {
                    let fault =
                        "the link has a password, which links of Waymark have not: anybody could open it.";
                    self.faults.push(fault.to_owned());
                }
            }
            Column::Kept(field) | Column::Idle(field) => {
                if values::says(value) {
                    self.fields.insert(field.to_owned(), value.clone());
                    if matches!(column, Column::Idle(_)) {
                        self.dropped.push(name);
                    }
                }
            }
            Column::Dropped => {
                if values::says(value) {
                    self.dropped.push(name);
                }
            }
            Column::Quiet => {}
        }
    }

    fn take_time(&mut self, member: &str, name: &str, text: Option<String>) {
        let Some(text) = text else { return };
        match values::millis(&text) {
            Some(at) => self.set(member, at.into()),
            None => self.faults.push(format!("{name} is not a time: {text}.")),
        }
    }

    fn set(&mut self, member: &str, value: Value) {
        self.body.insert(member.to_owned(), value);
    }

    /// The body of the create; else everything that is wrong with it.
    fn into_item(mut self, source: Source) -> Result<Item, String> {
        if self.custom.is_some() && self.link.is_some() && self.custom != self.link {
            self.dropped.push("Link beside a Custom Link");
        }
        let code = if self.custom.is_some() { None } else { self.code.take() };
        let link = self.custom.take().or_else(|| self.link.take());
        let code = code.or_else(|| link.as_deref().map(|link| values::code(link).to_owned()));
        match code.as_deref().map(|code| (code, ShortId::parse_custom(code))) {
            None => self.faults.push("the short link is missing.".to_owned()),
            Some((code, Err(error))) => self.faults.push(format!("shortId {code}: {error}.")),
            Some((code, Ok(_))) => self.set("shortId", code.into()),
        }
        let link = link.as_deref().map(values::without_scheme).or(code.as_deref()).unwrap_or_default();
        self.fields.insert(FROM.to_owned(), source.name().into());
        self.fields.insert(LINK.to_owned(), link.into());
        let fields = std::mem::take(&mut self.fields);
        self.set("customFields", fields.into());
        if let Err(faults) = Writable::parse(&Value::Object(self.body.clone())) {
            self.faults.extend(faults);
        }
        if self.faults.is_empty() {
            Ok(Item { body: self.body, thing: None, dropped: self.dropped })
        } else {
            Err(self.faults.join(" "))
        }
    }
}

#[cfg(test)]
mod tests;
