//! A file that an order reads line by line: codes that somebody uploaded, or the manifest of an earlier order.
//!
//! It is read window by window, so that each step knows where it goes on and the memory is bounded. In an upload a line is a
//! record: a quoted field does not continue in the next line, so every fault belongs to one line. In a manifest it does, as
//! serials may have line breaks.

use std::ops::Range;

use jobs::domain::job_lines::split;
use kernel::domain::limits::shorten;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{gtin, short_id::ShortId};

/// Longest line in bytes: some columns of texts.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Bytes that are read at once: more than the longest line has.
const WINDOW_BYTES: u64 = 256 * 1024;

/// Lines of an upload in one step, but those that are passed over: what one transaction notes. Of a manifest all of a window
/// are read.
const WINDOW_LINES: usize = 500;

/// Lines whose faults are named.
pub const MAX_FAULTS: usize = 100;

/// Most characters of a serial: file names and labels have no room for more.
const MAX_SERIAL: usize = 100;

/// Leading bytes of formats that are not text, with what the file is then.
const MAGIC: [(&[u8], &str); 5] = [
    (b"PK\x03\x04", "is a ZIP archive; give the file in it"),
    (b"PK\x05\x06", "is a ZIP archive; give the file in it"),
    (b"\x1f\x8b", "is compressed by gzip; give the file in it"),
    (b"\xff\xfe", "is in UTF-16; give it in UTF-8"),
    (b"\xfe\xff", "is in UTF-16; give it in UTF-8"),
];

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a file is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Form {
    /// Lines of fields; the first one names the columns.
    Csv,
    /// A JSON object in each line.
    Ndjson,
    /// The manifest of an order, as it was written.
    Manifest,
}

impl Form {
    /// What a request may name.
    pub const UPLOADS: [(&'static str, Self); 2] = [("CSV", Self::Csv), ("NDJSON", Self::Ndjson)];
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Column {
    /// The short id of a redirection.
    ShortId,
    /// `gs1:21` of a Thng, or what texts and names have in its place.
    Serial,
    /// `gs1:01` of its product.
    Gtin,
    /// Of a manifest: the place of the code, from 1.
    Index,
    /// Of a manifest: what the code says.
    Url,
    /// Of a manifest: nothing that is needed.
    Other,
}

impl Column {
    const OF_UPLOADS: [(&'static str, Self); 3] =
        [("shortid", Self::ShortId), ("serial", Self::Serial), ("gtin", Self::Gtin)];
}

/// A file, and how far it was read; stored with its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Where its bytes are.
    pub blob: String,
    /// How many.
    pub size_bytes: u64,
    /// What it is made of.
    pub form: Form,
    /// The domain of its short ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_domain: Option<String>,
    /// Bytes that were read.
    #[serde(default)]
    pub offset: u64,
    /// Lines that were read.
    #[serde(default)]
    pub line: u64,
    /// Its columns, once the first line was read.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// The faults of its lines, the first [`MAX_FAULTS`].
    #[serde(default)]
    pub faults: Vec<String>,
}

/// A line that names a code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Its number, from 1.
    pub line: u64,
    /// Of a manifest: the place of the code, from 1.
    pub index: u64,
    /// The short id of the redirection.
    pub short_id: Option<String>,
    /// The serial.
    pub serial: Option<String>,
    /// The GTIN, with 14 digits where it is valid.
    pub gtin: Option<String>,
    /// Of a manifest: what the code says.
    pub url: Option<String>,
}

/// What a window holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines {
    /// The lines that name codes.
    pub rows: Vec<Row>,
    /// The faults of the others, each with the number of its line.
    pub faults: Vec<(u64, String)>,
}

impl Input {
    /// A file that nobody has read.
    #[must_use]
    pub fn new(blob: String, size_bytes: u64, form: Form, short_domain: Option<String>) -> Self {
        let (columns, faults) = (Vec::new(), Vec::new());
        Self { blob, size_bytes, form, short_domain, offset: 0, line: 0, columns, faults }
    }

    /// The bytes that come next; `None` at the end.
    #[must_use]
    pub fn window(&self) -> Option<Range<u64>> {
        let end = self.offset.saturating_add(WINDOW_BYTES).min(self.size_bytes);
        (self.offset < end).then_some(self.offset..end)
    }

    /// Whether all was read, or enough to refuse it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.window().is_none() || self.faults.len() >= MAX_FAULTS
    }

    /// Keeps the faults of lines, the first ones.
    pub fn note(&mut self, mut faults: Vec<(u64, String)>) {
        faults.sort();
        let room = MAX_FAULTS.saturating_sub(self.faults.len());
        self.faults
            .extend(faults.into_iter().take(room).map(|(line, fault)| format!("line {line}: {fault}")));
    }

    /// Reads lines from the bytes of [`Self::window`], and moves behind them.
    ///
    /// # Errors
    /// The file as a whole cannot be read; a sentence without its subject.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Lines, String> {
        let is_last = self.offset.saturating_add(bytes.len() as u64) >= self.size_bytes;
        let mut rest = bytes;
        if self.offset == 0 {
            if let Some((_, what)) = MAGIC.iter().find(|(magic, _)| rest.starts_with(magic)) {
                return Err((*what).to_owned());
            }
            rest = rest.strip_prefix(BOM).unwrap_or(rest);
        }
        let mut found = Lines::default();
        let most = if self.form == Form::Manifest { usize::MAX } else { WINDOW_LINES };
        // What is passed over is not counted: a file of empty lines would take a step for each 500 bytes.
        while found.rows.len() + found.faults.len() < most {
            let (line, behind) = match line_end(rest, self.form) {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None if is_last && !rest.is_empty() => (rest, &rest[rest.len()..]),
                None => break,
            };
            rest = behind;
            self.line += 1;
            self.read(line.strip_suffix(b"\r").unwrap_or(line), &mut found)?;
        }
        let taken = bytes.len() - rest.len();
        if taken == 0 {
            return Err(format!("has a line that is longer than {MAX_LINE_BYTES} bytes: {}", self.line + 1));
        }
        self.offset = self.offset.saturating_add(taken as u64);
        if self.window().is_none() && self.columns.is_empty() && self.form != Form::Ndjson {
            return Err("has no line that names its columns".to_owned());
        }
        Ok(found)
    }

    fn read(&mut self, line: &[u8], found: &mut Lines) -> Result<(), String> {
        let number = self.line;
        let Lines { rows, faults } = found;
        let mut fault = |text: String| faults.push((number, text));
        if line.len() > MAX_LINE_BYTES {
            fault(format!("it is longer than {MAX_LINE_BYTES} bytes."));
            return Ok(());
        }
        let Ok(text) = std::str::from_utf8(line) else {
            fault("it is not UTF-8.".to_owned());
            return Ok(());
        };
        if text.trim().is_empty() || self.form == Form::Csv && text.starts_with('#') {
            return Ok(());
        }
        let row = match self.form {
            Form::Ndjson => object(text).and_then(checked),
            Form::Csv => {
                let fields = split(text).map_err(|what| format!("it {what}."));
                if self.columns.is_empty() {
                    let names = fields.map_err(|fault| format!("names no columns: {fault}"))?;
                    self.columns = columns(self.form, names.iter().map(|name| &**name))?;
                    return Ok(());
                }
                let fields =
                    fields.and_then(|fields| record(&self.columns, fields.iter().map(|field| &**field)));
                fields.and_then(checked)
            }
            Form::Manifest => {
                let fields = print::manifest_fields(text);
                if self.columns.is_empty() {
                    self.columns = columns(self.form, fields.iter().map(String::as_str))?;
                    return Ok(());
                }
                record(&self.columns, fields.iter().map(String::as_str))
            }
        };
        match row {
            Ok(row) => rows.push(Row { line: number, ..row }),
            Err(text) => fault(text),
        }
        Ok(())
    }
}

/// Where the first line ends, if it does.
fn line_end(bytes: &[u8], form: Form) -> Option<usize> {
    let mut is_quoted = false;
    bytes.iter().position(|byte| {
        is_quoted ^= form == Form::Manifest && *byte == b'"';
        !is_quoted && *byte == b'\n'
    })
}

/// The columns that the first line names.
fn columns<'a>(form: Form, names: impl Iterator<Item = &'a str>) -> Result<Vec<Column>, String> {
    const KNOWN: &str = "known are shortId, serial and gtin";
    let mut found = Vec::new();
    for name in names {
        let folded: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let folded = folded.to_ascii_lowercase();
        let known = Column::OF_UPLOADS.iter().find(|(known, _)| *known == folded).map(|(_, column)| *column);
        let column = match (form, known) {
            (_, Some(column)) => column,
            (Form::Manifest, None) => match name {
                "index" => Column::Index,
                "url" => Column::Url,
                _ => Column::Other,
            },
            (Form::Csv | Form::Ndjson, None) => {
                return Err(format!("has the column {:?} in its first line; {KNOWN}", shorten(name)));
            }
        };
        if column != Column::Other && found.contains(&column) {
            return Err(format!("has the column {:?} twice", shorten(name)));
        }
        found.push(column);
    }
    if found.contains(&Column::ShortId) || found.contains(&Column::Serial) {
        Ok(found)
    } else {
        Err(format!("has neither a column shortId nor serial; {KNOWN}"))
    }
}

/// The row of the fields of a line.
fn record<'a>(columns: &[Column], fields: impl Iterator<Item = &'a str>) -> Result<Row, String> {
    let mut row = Row::default();
    let mut columns = columns.iter();
    for field in fields {
        let value = (!field.is_empty()).then(|| field.to_owned());
        match columns.next() {
            Some(Column::ShortId) => row.short_id = value,
            Some(Column::Serial) => row.serial = value,
            Some(Column::Gtin) => row.gtin = value,
            Some(Column::Url) => row.url = value,
            Some(Column::Index) => row.index = field.parse().unwrap_or_default(),
            Some(Column::Other) => {}
            None => return Err("it has more fields than the first line.".to_owned()),
        }
    }
    Ok(row)
}

/// The row of an object.
fn object(text: &str) -> Result<Row, String> {
    let Ok(Value::Object(members)) = serde_json::from_str(text) else {
        return Err("it is no JSON object.".to_owned());
    };
    let mut row = Row::default();
    for (name, value) in members {
        let to = match name.as_str() {
            "shortId" => &mut row.short_id,
            "serial" => &mut row.serial,
            "gtin" => &mut row.gtin,
            other => {
                let other = shorten(other);
                return Err(format!("it has the member {other:?}; known are shortId, serial and gtin."));
            }
        };
        *to = match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                return Err(format!("{name} must be a string."));
            }
        };
    }
    Ok(row)
}

/// A row of an upload whose values can be what they stand for.
fn checked(row: Row) -> Result<Row, String> {
    if row.short_id.is_none() && row.serial.is_none() {
        return Err("it has neither a shortId nor a serial.".to_owned());
    }
    if let Some(text) = row.short_id.as_deref().filter(|text| text.parse::<ShortId>().is_err()) {
        return Err(format!("{:?} is no short id.", shorten(text)));
    }
    if let Some(text) = row.serial.as_deref().filter(|text| text.is_empty() || !is_plain(text)) {
        let text = shorten(text);
        return Err(format!(
            "the serial {text:?} must have 1 to {MAX_SERIAL} characters, none of them control."
        ));
    }
    if let Some(text) = row.gtin.as_deref().filter(|text| !gtin::is_valid(text)) {
        return Err(format!("{:?} is no GTIN with its check digit.", shorten(text)));
    }
    Ok(Row { gtin: row.gtin.map(|text| gtin::canonical(&text)), ..row })
}

fn is_plain(text: &str) -> bool {
    text.chars().count() <= MAX_SERIAL && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;
