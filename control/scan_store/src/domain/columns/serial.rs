//! The serial of a Digital Link, which follows from the entry URL: else each serial would make a shape of its own.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

const SERIAL: &str = "serial";

/// Leaves a mark in the place of the serial, if the entry URL has it.
pub(super) fn take(doc: &mut Map<String, Value>, url: &str) {
    if let Some(Value::String(text)) = doc.get(SERIAL)
        && in_url(url).as_ref() == Some(text)
    {
        doc.insert(SERIAL.to_owned(), Value::Null);
    }
}

/// Puts the serial in the place of the mark; `None` if the entry URL has none.
pub(super) fn put_back(doc: &mut Map<String, Value>, url: &str) -> Option<()> {
    if doc.get(SERIAL) == Some(&Value::Null) {
        doc.insert(SERIAL.to_owned(), Value::String(in_url(url)?));
    }
    Some(())
}

/// The value behind `/21/` at the end of the path.
fn in_url(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    let mut segments = path.strip_suffix('/').unwrap_or(path).rsplit('/');
    let value = segments.next()?;
    let is_serial = segments.next() == Some("21");
    is_serial.then(|| percent_decode_str(value).decode_utf8_lossy().into_owned())
}
