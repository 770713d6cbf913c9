//! From the cells or members of a link to the body of a create.

use redirects::domain::{link_details::MAX_TITLE, redirection::Writable};
use serde_json::{Map, Value};
use shared::short_id::ShortId;

use crate::{
    Error, Source,
    columns::{self, Column},
    json, values,
};

/// Custom field with the name of the other service; a link without it was not imported from there.
pub const FROM: &str = "importedFrom";

/// Custom field with the short link at the other service, without its scheme.
pub const LINK: &str = "importedLink";

/// What a link asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The body of the create, but for whose link it is.
    pub body: Map<String, Value>,
    /// What the link has besides, and is not taken over.
    pub dropped: Vec<&'static str>,
}

/// The columns of a CSV file.
#[derive(Debug)]
pub struct Columns {
    source: Source,
    /// For each column of the file, what it says.
    columns: Vec<Option<(&'static str, Column)>>,
}

impl Columns {
    /// Columns of these names.
    ///
    /// # Errors
    /// There is none for the short link, or for the target.
    pub fn new(source: Source, header: &[String]) -> Result<Self, Error> {
        let columns: Vec<_> = header.iter().map(|name| columns::find(source, name)).collect();
        let has = |wanted: &[Column]| columns.iter().flatten().any(|(_, column)| wanted.contains(column));
        if has(&[Column::Target]) && has(&[Column::Link, Column::CustomLink, Column::Code]) {
            Ok(Self { source, columns })
        } else {
            Err(Error::NoColumns(source))
        }
    }

    /// What a row asks for.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(&self, cells: Vec<String>) -> Result<Link, Vec<String>> {
        if cells.len() != self.columns.len() {
            let (found, expected) = (cells.len(), self.columns.len());
            return Err(vec![format!("the line has {found} fields, the header {expected}")]);
        }
        let cells = self.columns.iter().zip(cells);
        let members =
            cells.filter_map(|(column, text)| column.map(|(name, of)| (name, of, Value::String(text))));
        Draft::read(members).into_link(self.source)
    }
}

/// What an object of a JSON file asks for.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(source: Source, link: Map<String, Value>) -> Result<Link, Vec<String>> {
    Draft::read(json::members(source, link, |_| ())).into_link(source)
}

/// A link as it is read.
#[derive(Debug, Default)]
struct Draft {
    link: Option<String>,
    custom: Option<String>,
    code: Option<String>,
    body: Map<String, Value>,
    fields: Map<String, Value>,
    dropped: Vec<&'static str>,
    faults: Vec<String>,
}

impl Draft {
    fn read(members: impl IntoIterator<Item = (&'static str, Column, Value)>) -> Self {
        let mut draft = Self::default();
        for (name, column, value) in members {
            draft.take(name, column, &value);
        }
        draft
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
            Column::MaxScans => {
                if let Some(text) = text {
                    // The parser of the API says which numbers it takes.
                    let most = text.parse::<i64>().map_or_else(|_| text.into(), Value::from);
                    self.set("maxScans", most);
                }
            }
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
    fn into_link(mut self, source: Source) -> Result<Link, Vec<String>> {
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
            Ok(Link { body: self.body, dropped: self.dropped })
        } else {
            Err(self.faults)
        }
    }
}

#[cfg(test)]
mod tests;
