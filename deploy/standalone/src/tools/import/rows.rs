//! From records to the elements of a bulk create.

use std::io;

use serde::Serialize;
use serde_json::{Map, Value};

use super::records::{Layout, Record};

/// Columns that an import reads; others are ignored.
const COLUMNS: [&str; 7] =
    ["shortId", "platformId", "evrythngId", "defaultRedirectUrl", "forwardQuery", "shortDomain", "type"];

/// Turns records into JSON elements.
#[derive(Debug)]
pub(super) struct Rows {
    layout: Layout,
    /// The header as it stands in the file; empty for NDJSON.
    pub(super) header: Vec<String>,
    /// For each column of the file, which of [`COLUMNS`] it is.
    columns: Vec<Option<&'static str>>,
    /// The resource of rows that name none.
    platform_id: Option<String>,
}

/// An element of the array that a chunk posts.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Element<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    short_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_redirect_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward_query: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    short_domain: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'a str>,
}

impl Rows {
    /// Rows of an NDJSON file.
    pub(super) fn ndjson(platform_id: Option<String>) -> Self {
        Self { layout: Layout::Ndjson, header: Vec::new(), columns: Vec::new(), platform_id }
    }

    /// Rows of a CSV file with this header; the error says which column is missing.
    pub(super) fn csv(header: Option<Record>, platform_id: Option<String>) -> Result<Self, String> {
        let bytes = match header.map(|header| header.content) {
            None => return Err("the file is empty: its first line must name the columns".to_owned()),
            Some(Err(fault)) => {
                return Err(format!("the first line must name the columns: {}", fault.reason));
            }
            Some(Ok(bytes)) => bytes,
        };
        let header = fields(&bytes).map_err(|reason| format!("the first line: {reason}"))?;
        let columns: Vec<_> = header
            .iter()
            .map(|name| COLUMNS.into_iter().find(|column| column.eq_ignore_ascii_case(name)))
            .collect();
        let has = |name| columns.contains(&Some(name));
        if !has("defaultRedirectUrl") {
            return Err("the first line names no column defaultRedirectUrl".to_owned());
        }
        if platform_id.is_none() && !has("platformId") && !has("evrythngId") {
            return Err("the first line names no column platformId: add it, or give --platform-id".to_owned());
        }
        Ok(Self { layout: Layout::Csv, header, columns, platform_id })
    }

    /// Columns of the file that the import does not read.
    pub(super) fn ignored(&self) -> Vec<&str> {
        // The first two are those that a file of rejects has.
        self.header
            .iter()
            .zip(&self.columns)
            .filter(|(name, column)| column.is_none() && !["line", "reason"].contains(&name.as_str()))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// Appends the element of a record to `out`; the error is the reason why it is none.
    pub(super) fn write(&self, record: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self.layout {
            Layout::Csv => self.write_csv(record, out),
            Layout::Ndjson => self.write_json(record, out),
        }
    }

    fn write_csv(&self, record: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let values = fields(record)?;
        if values.len() != self.header.len() {
            return Err(format!("the line has {} fields, the header {}", values.len(), self.header.len()));
        }
        let mut element = Element { platform_id: self.platform_id.as_deref(), ..Element::default() };
        for (column, value) in self.columns.iter().zip(&values) {
            let value = Some(value.as_str()).filter(|value| !value.is_empty());
            let (Some(column), Some(text)) = (*column, value) else { continue };
            match column {
                "shortId" => element.short_id = value,
                "platformId" | "evrythngId" => element.platform_id = value,
                "defaultRedirectUrl" => element.default_redirect_url = value,
                "shortDomain" => element.short_domain = value,
                "type" => element.r#type = value,
                _ => element.forward_query = Some(truth(text)?),
            }
        }
        serde_json::to_writer(out, &element).map_err(|error| error.to_string())
    }

    fn write_json(&self, record: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let mut object: Map<String, Value> = serde_json::from_slice(record)
            .map_err(|error| format!("the line is not a JSON object: {error}"))?;
        if let Some(platform_id) = &self.platform_id
            && !object.contains_key("platformId")
            && !object.contains_key("evrythngId")
        {
            object.insert("platformId".to_owned(), Value::String(platform_id.clone()));
        }
        serde_json::to_writer(out, &object).map_err(|error| error.to_string())
    }
}

/// The fields of one CSV record, without blanks around them.
pub(super) fn fields(record: &[u8]) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .buffer_capacity(record.len().max(1))
        .from_reader(record);
    let mut row = csv::StringRecord::new();
    match reader.read_record(&mut row) {
        Ok(_) => Ok(row.iter().map(str::to_owned).collect()),
        Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => {
            Err("the line is not UTF-8".to_owned())
        }
        Err(error) => Err(io::Error::from(error).to_string()),
    }
}

fn truth(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err("forwardQuery is neither true nor false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str, platform_id: Option<&str>) -> Result<Rows, String> {
        let record = Record { line: 1, content: Ok(text.as_bytes().to_vec()) };
        Rows::csv(Some(record), platform_id.map(str::to_owned))
    }

    fn element(rows: &Rows, record: &[u8]) -> Result<String, String> {
        let mut out = Vec::new();
        rows.write(record, &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn lines_become_elements() {
        let rows = header("shortId, EvrythngId,defaultRedirectUrl,forwardQuery,note", None).unwrap();
        assert_eq!(rows.ignored(), ["note"]);
        let whole = r#"{"shortId":"A1","platformId":"U","defaultRedirectUrl":"https://a/?b=\"c\"","forwardQuery":true}"#;
        for (line, expected, why) in [
            (&b"A1,U,\"https://a/?b=\"\"c\"\"\",1,x"[..], Ok(whole), "all columns"),
            (
                b" ,U,https://a,,",
                Ok(r#"{"platformId":"U","defaultRedirectUrl":"https://a"}"#),
                "blanks are absent",
            ),
            (b"A1,U,https://a,maybe,", Err("forwardQuery is neither true nor false"), "a truth value"),
            (b"A1,U,https://a", Err("the line has 3 fields, the header 5"), "too few"),
            (b"A1,\xff,https://a,,", Err("the line is not UTF-8"), "Latin-1"),
        ] {
            assert_eq!(element(&rows, line), expected.map(str::to_owned).map_err(str::to_owned), "{why}");
        }
    }

    #[test]
    fn headers_must_name_what_is_required() {
        for (line, platform_id, fault) in [
            ("defaultRedirectUrl,platformId", None, None),
            ("defaultRedirectUrl", Some("U"), None),
            ("defaultRedirectUrl", None, Some("platformId")),
            ("platformId,url", None, Some("defaultRedirectUrl")),
        ] {
            let found = header(line, platform_id).err();
            assert_eq!(found.is_some(), fault.is_some(), "{line}: {found:?}");
            assert!(found.unwrap_or_default().contains(fault.unwrap_or_default()), "{line}");
        }
        assert!(Rows::csv(None, None).unwrap_err().contains("empty"));
    }

    #[test]
    fn json_lines_get_the_default_resource() {
        let rows = Rows::ndjson(Some("U".to_owned()));
        for (line, expected) in [
            (&br#"{"defaultRedirectUrl":"x"}"#[..], Some(r#"{"defaultRedirectUrl":"x","platformId":"U"}"#)),
            (br#"{"evrythngId":"V"}"#, Some(r#"{"evrythngId":"V"}"#)),
            (b"[]", None),
            (b"{", None),
        ] {
            assert_eq!(element(&rows, line).ok().as_deref(), expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
