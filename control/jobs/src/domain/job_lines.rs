//! Parses CSV files of ids as their bytes arrive, in bounded memory.
//!
//! One line is one record: a quoted field cannot continue in the next line, so every error belongs to one line and the
//! lines after it are unaffected. Blank lines and lines that begin with `#` are skipped. The first record is a header
//! if one of its fields is the key of the input or a usual name of an id; the ids are then in that column, else in the
//! first one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::limits::shorten;

// Spec gap: how long a line may be is not shown.
/// Longest line, in bytes: an id and a good many columns beside it.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Names of columns that hold ids, folded: lower case, letters and digits only.
const ID_COLUMNS: [&str; 14] = [
    "id",
    "ids",
    "thng",
    "thngs",
    "thngid",
    "thngids",
    "platformid",
    "platformids",
    "evrythngid",
    "externalid",
    "identifier",
    "identifiers",
    "shortid",
    "shortids",
];

/// An entry of a job's input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    /// An id as written.
    Id(String),
    /// A line without an id: its start, and the fault.
    Bad {
        /// The start of the line.
        text: String,
        /// The fault, with file and line.
        fault: String,
    },
}

/// Why a file as a whole is no list of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoText {
    /// It begins as a ZIP archive does.
    #[error("is a ZIP archive")]
    Zip,
    /// It begins as a compressed file does.
    #[error("is compressed by gzip")]
    Gzip,
    /// It begins with the mark of UTF-16.
    #[error("is in UTF-16; give it in UTF-8")]
    Utf16,
}

/// Leading bytes of formats that are not text, and the fault for each.
const MAGIC: [(&[u8], NoText); 5] = [
    (b"PK\x03\x04", NoText::Zip),
    (b"PK\x05\x06", NoText::Zip),
    (b"\x1f\x8b", NoText::Gzip),
    (b"\xff\xfe", NoText::Utf16),
    (b"\xfe\xff", NoText::Utf16),
];

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Bytes that identify the format of a file.
const HEAD: usize = 4;

/// Reads one file; its bytes are fed in parts of any size.
#[derive(Debug)]
pub struct Lines {
    /// Its name, for faults.
    file: String,
    /// The key of the input, which may be the name of the column.
    key: Option<String>,
    /// Number of the line that is being read, from 1.
    line: u64,
    /// The part of the line that was fed so far.
    part: Vec<u8>,
    /// Whether the line is too long; the rest of it is skipped.
    is_overlong: bool,
    /// Whether the last byte was a carriage return, whose line feed is still to come.
    after_return: bool,
    /// Whether the leading bytes were checked.
    is_begun: bool,
    /// The column of the ids, once it is known.
    column: Option<usize>,
}

impl Lines {
    /// A reader of the file with this name.
    #[must_use]
    pub fn new(file: &str, key: Option<&str>) -> Self {
        Self {
            file: shorten(file).to_owned(),
            key: key.map(str::to_owned),
            line: 1,
            part: Vec::new(),
            is_overlong: false,
            after_return: false,
            is_begun: false,
            column: None,
        }
    }

    /// Takes the next bytes; adds the entries that end in them.
    ///
    /// # Errors
    /// The file is no text.
    pub fn feed(&mut self, mut bytes: &[u8], entries: &mut Vec<Entry>) -> Result<(), NoText> {
        if !self.is_begun {
            let wanted = HEAD.saturating_sub(self.part.len()).min(bytes.len());
            self.part.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if self.part.len() < HEAD {
                return Ok(());
            }
            self.begin(entries)?;
        }
        self.take(bytes, entries);
        Ok(())
    }

    /// Adds the entry of a last line without an end.
    ///
    /// # Errors
    /// The file is no text.
    pub fn finish(mut self, entries: &mut Vec<Entry>) -> Result<(), NoText> {
        if !self.is_begun {
            self.begin(entries)?;
        }
        if self.is_overlong || !self.part.is_empty() {
            self.end_line(entries);
        }
        Ok(())
    }

    fn begin(&mut self, entries: &mut Vec<Entry>) -> Result<(), NoText> {
        self.is_begun = true;
        let head = std::mem::take(&mut self.part);
        if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Err(*kind);
        }
        self.take(head.strip_prefix(BOM).unwrap_or(&head), entries);
        Ok(())
    }

    fn take(&mut self, mut bytes: &[u8], entries: &mut Vec<Entry>) {
        while let Some(&first) = bytes.first() {
            if self.after_return && first == b'\n' {
                bytes = &bytes[1..];
            }
            self.after_return = false;
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.add(bytes);
                return;
            };
            self.add(&bytes[..end]);
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(entries);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES - self.part.len();
        self.is_overlong |= bytes.len() > room;
        self.part.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, entries: &mut Vec<Entry>) {
        let part = std::mem::take(&mut self.part);
        let entry = if self.is_overlong {
            let fault = format!("is longer than {MAX_LINE_BYTES} bytes");
            Some(self.bad(&String::from_utf8_lossy(&part), &fault))
        } else {
            self.entry(&part)
        };
        entries.extend(entry);
        // The same memory for the next line.
        self.part = part;
        self.part.clear();
        self.is_overlong = false;
        self.line += 1;
    }

    fn entry(&mut self, line: &[u8]) -> Option<Entry> {
        if line.starts_with(b"#") || line.trim_ascii().is_empty() {
            return None;
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return Some(self.bad(&String::from_utf8_lossy(line), "is not UTF-8"));
        };
        if let (Some(0), false) = (self.column, text.contains(['"', ','])) {
            return Some(Entry::Id(text.trim().to_owned()));
        }
        let fields = match split(text) {
            Ok(fields) => fields,
            Err(fault) => return Some(self.bad(text, fault)),
        };
        if fields.iter().all(|field| field.trim().is_empty()) {
            return None;
        }
        let column = match self.column {
            Some(column) => column,
            None => {
                let named = self.find_column(&fields);
                self.column = Some(named.unwrap_or(0));
                if named.is_some() {
                    return None;
                }
                0
            }
        };
        match fields.get(column) {
            Some(field) if !field.trim().is_empty() => Some(Entry::Id(field.trim().to_owned())),
            Some(_) | None => Some(self.bad(text, "holds no id")),
        }
    }

    fn find_column(&self, fields: &[Cow<'_, str>]) -> Option<usize> {
        let key = self.key.as_deref();
        let is_key = |field: &Cow<'_, str>| key.is_some_and(|key| key.eq_ignore_ascii_case(field));
        let is_name = |field: &Cow<'_, str>| {
            let folded: String =
                field.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
            // A field with other signs than those between words is a value.
            field.len() <= folded.len() + 2 && ID_COLUMNS.contains(&folded.as_str())
        };
        fields.iter().position(is_key).or_else(|| fields.iter().position(is_name))
    }

    fn bad(&self, text: &str, fault: &str) -> Entry {
        let (file, line) = (&self.file, self.line);
        Entry::Bad { text: shorten(text.trim()).to_owned(), fault: format!("{file}, line {line}: {fault}.") }
    }
}

/// The fields of a line, without quotes and the space around them.
///
/// # Errors
/// A quote is not closed, or something stands behind one; a sentence without its subject.
pub fn split(line: &str) -> Result<Vec<Cow<'_, str>>, &'static str> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let begun = rest.trim_start_matches([' ', '\t']);
        let Some(quoted) = begun.strip_prefix('"') else {
            match rest.split_once(',') {
                Some((field, behind)) => {
                    fields.push(Cow::Borrowed(field.trim()));
                    rest = behind;
                    continue;
                }
                None => {
                    fields.push(Cow::Borrowed(rest.trim()));
                    return Ok(fields);
                }
            }
        };
        let (field, behind) = unquote(quoted)?;
        fields.push(field);
        let behind = behind.trim_start_matches([' ', '\t']);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Ok(fields),
            None => return Err("has text behind a closing quote"),
        }
    }
}

/// A field behind its opening quote, and what stands behind the closing one.
fn unquote(text: &str) -> Result<(Cow<'_, str>, &str), &'static str> {
    let mut found = Cow::Borrowed("");
    let mut rest = text;
    loop {
        let Some((part, behind)) = rest.split_once('"') else {
            return Err("has a quote that is not closed");
        };
        if found.is_empty() {
            found = Cow::Borrowed(part)
        } else {
            found.to_mut().push_str(part)
        }
        match behind.strip_prefix('"') {
            // Two quotes are one.
            Some(next) => {
                found.to_mut().push('"');
                rest = next;
            }
            None => return Ok((found, behind)),
        }
    }
}

#[cfg(test)]
mod tests;
