//! JSON files of other shorteners: answers of their APIs, one behind the other, as one link a line.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
};

use serde_json::{Map, Value, value::RawValue};

use crate::{
    Error, Source,
    columns::{self, Column},
};

/// Longest JSON file, in bytes: it is held in memory, unlike CSV.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Most bytes of all lines: twice the file, for links that have custom ones.
const MAX_LINES_BYTES: u64 = 2 * MAX_BYTES;

/// Members in which answers have their links.
const LISTS: [&str; 4] = ["links", "shortUrls", "data", "result"];

/// Deepest nesting of lists: pages that were put into an array, and their members.
const MAX_DEPTH: usize = 8;

/// The links of a JSON file.
#[derive(Debug)]
pub struct Lines {
    /// Each link on a line of its own.
    pub text: Vec<u8>,
    /// Members of links that are not known.
    pub unknown: Vec<String>,
}

/// Whether a file is JSON by its first sign.
#[must_use]
pub fn is_json(start: &[u8]) -> bool {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    start.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| matches!(byte, b'{' | b'['))
}

/// Reads a whole file of at most 64 MiB: answers of the API, each a list of links, or links one behind the other.
///
/// # Errors
/// It cannot be read, is too long, or is not JSON.
pub fn lines(source: Source, input: impl Read) -> Result<Lines, Error> {
    let mut text = String::new();
    input.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Error::TooLong);
    }
    let mut links = Vec::new();
    for document in
        serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}')).into_iter::<&RawValue>()
    {
        collect(document?, 0, &mut links)?;
    }
    let (mut text, mut unknown) = (Vec::new(), BTreeSet::new());
    for link in links {
        let mut link: Value = serde_json::from_str(link.get())?;
        let more = more_links(source, &mut link);
        write_line(&mut text, &link)?;
        for url in more {
            if let Value::Object(link) = &mut link {
                link.insert("link".to_owned(), url);
            }
            write_line(&mut text, &link)?;
        }
        if let Value::Object(link) = link {
            members(source, link, |name| {
                unknown.insert(name);
            });
        }
    }
    Ok(Lines { text, unknown: unknown.into_iter().collect() })
}

/// Appends a link; those of a file are held in memory, and a Bitlink may be written many times.
fn write_line(text: &mut Vec<u8>, link: &Value) -> Result<(), Error> {
    serde_json::to_writer(&mut *text, link)?;
    text.push(b'\n');
    if text.len() as u64 > MAX_LINES_BYTES { Err(Error::TooLong) } else { Ok(()) }
}

/// The columns of a link, and names of members that are none.
pub(super) fn members(
    source: Source,
    link: Map<String, Value>,
    mut unknown: impl FnMut(String),
) -> Vec<(&'static str, Column, Value)> {
    let mut found = Vec::new();
    let mut take = |name: String, value: Value| match columns::find(source, &name) {
        Some((name, column)) => found.push((name, column, value)),
        None => unknown(name),
    };
    for (name, value) in link {
        match value {
            Value::Object(inner) if columns::has_members(source, &name) => {
                inner.into_iter().for_each(|(member, value)| take(format!("{name}.{member}"), value));
            }
            value => take(name, value),
        }
    }
    found
}

/// Finds the links of a document.
fn collect<'a>(value: &'a RawValue, depth: usize, links: &mut Vec<&'a RawValue>) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::NoList);
    }
    let text = value.get();
    if text.starts_with('[') {
        let all: Vec<&'a RawValue> = serde_json::from_str(text)?;
        return all.into_iter().try_for_each(|value| collect(value, depth + 1, links));
    }
    if text.starts_with('{') {
        let members: BTreeMap<String, &'a RawValue> = serde_json::from_str(text)?;
        // A line of the rejects of an earlier import.
        if let (Some(record), true) = (members.get("record").copied(), members.contains_key("reason")) {
            return collect(record, depth + 1, links);
        }
        let list = LISTS.iter().find_map(|name| members.get(*name).copied());
        if let Some(list) = list.filter(|list| list.get().starts_with(['[', '{'])) {
            return collect(list, depth + 1, links);
        }
        // YOURLS: link_1, link_2 and so on.
        let number = |name: &str| name.strip_prefix("link_")?.parse::<u64>().ok();
        if !members.is_empty() && members.keys().all(|name| number(name).is_some()) {
            let mut numbered: Vec<_> = members.into_iter().collect();
            numbered.sort_by_key(|(name, _)| number(name));
            links.extend(numbered.into_iter().map(|(_, link)| link));
            return Ok(());
        }
    }
    links.push(value);
    Ok(())
}

/// Takes the custom links out of a Bitlink: it is imported under each of them, too.
fn more_links(source: Source, link: &mut Value) -> Vec<Value> {
    match link {
        Value::Object(link) if source == Source::Bitly => match link.remove("custom_bitlinks") {
            Some(Value::Array(mut custom)) => {
                custom.retain(|url| Some(url) != link.get("link"));
                custom
            }
            Some(_) | None => Vec::new(),
        },
        _ => Vec::new(),
    }
}
