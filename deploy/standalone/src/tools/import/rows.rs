//! From records to what they ask for: an element of a bulk create, and the Thing it may need.

use std::io;

use serde_json::{Map, Value};

use super::records::{Layout, Record};

/// Identifier key of serials.
pub(super) const SERIAL: &str = "gs1:21";

/// Columns that an import reads; others are ignored.
const COLUMNS: [&str; 17] = [
    "shortId",
    "platformId",
    "evrythngId",
    "defaultRedirectUrl",
    "target",
    "forwardQuery",
    "statusCode",
    "validFrom",
    "validUntil",
    "maxScans",
    "status",
    "endedUrl",
    "shortDomain",
    "type",
    // Of a Thing that is to be made; nothing where no column has serials.
    SERIAL,
    "name",
    "product",
];

/// Delimiters of CSV: of those that make equally many columns known, the first.
const DELIMITERS: [u8; 3] = *b",;\t";

/// Turns records into what they ask for.
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

/// A Thing as a row names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Named {
    /// Value of its identifier `gs1:21`.
    pub(super) serial: String,
    /// Id of its product, or an identifier of it such as `gs1:01:09501101020917`.
    pub(super) product: Option<String>,
    /// Name; the serial where there is none.
    pub(super) name: Option<String>,
}

/// What a row asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Item {
    /// The element of the array that a chunk posts.
    pub(super) body: Map<String, Value>,
    /// The Thing whose id is to be its `platformId`.
    pub(super) thing: Option<Named>,
    /// What the row has beside, and is not taken over.
    pub(super) dropped: Vec<&'static str>,
}

impl Item {
    /// Bytes of the element, with room for the id of its Thing.
    pub(super) fn size(&self) -> usize {
        const PLATFORM_ID: usize = 40;
        serde_json::to_vec(&self.body).map_or(0, |text| text.len() + PLATFORM_ID)
    }
}

/// The delimiter by which most columns of a header are known.
pub(super) fn delimiter(header: &[u8]) -> u8 {
    delimiter_of(header, |name| column(name).is_some())
}

/// The delimiter by which most names of a header are known.
pub(super) fn delimiter_of(header: &[u8], is_known: impl Fn(&str) -> bool) -> u8 {
    let known = |delimiter: u8| {
        let names = fields(header, delimiter).unwrap_or_default();
        names.iter().filter(|name| is_known(name)).count()
    };
    // Of equals `max_by_key` takes the last.
    DELIMITERS.into_iter().rev().max_by_key(|delimiter| known(*delimiter)).unwrap_or(b',')
}

fn column(name: &str) -> Option<&'static str> {
    COLUMNS.into_iter().find(|column| column.eq_ignore_ascii_case(name))
}

impl Rows {
    /// Rows of an NDJSON file.
    pub(super) fn ndjson(platform_id: Option<String>) -> Self {
        Self { layout: Layout::Ndjson, header: Vec::new(), columns: Vec::new(), platform_id }
    }

    /// Rows of a CSV file with this header; the error says which column is missing.
    pub(super) fn csv(
        header: Option<Record>,
        delimiter: u8,
        platform_id: Option<String>,
    ) -> Result<Self, String> {
        let header = self::header(header, delimiter)?;
        let mut columns: Vec<_> = header.iter().map(|name| column(name)).collect();
        let has = |columns: &[Option<&str>], name| columns.contains(&Some(name));
        let makes_things = has(&columns, SERIAL);
        if !makes_things {
            drop_columns(&mut columns, &["name", "product"]);
        }
        if has(&columns, "defaultRedirectUrl") {
            drop_columns(&mut columns, &["target"]);
        } else if !has(&columns, "target") {
            return Err("the first line names no column defaultRedirectUrl (or target)".to_owned());
        }
        let names_owner = has(&columns, "platformId") || has(&columns, "evrythngId") || makes_things;
        if platform_id.is_none() && !names_owner {
            return Err(format!(
                "the first line names no column platformId: add it, or give --platform-id, or add the column \
                 {SERIAL} for Things that are to be made"
            ));
        }
        Ok(Self { layout: Layout::Csv(delimiter), header, columns, platform_id })
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

    /// What a record asks for; the error is the reason why it is nothing.
    pub(super) fn parse(&self, record: &[u8]) -> Result<Item, String> {
        match self.layout {
            Layout::Csv(delimiter) => self.parse_csv(record, delimiter),
            Layout::Ndjson => self.parse_json(record),
        }
    }

    fn parse_csv(&self, record: &[u8], delimiter: u8) -> Result<Item, String> {
        let values = fields(record, delimiter)?;
        if values.len() != self.header.len() {
            return Err(format!("the line has {} fields, the header {}", values.len(), self.header.len()));
        }
        let mut body = Map::new();
        for (column, text) in self.columns.iter().zip(&values) {
            let Some(column) = column.filter(|_| !text.is_empty()) else { continue };
            let value = match column {
                "forwardQuery" => truth(text)?.into(),
                "statusCode" => status_code(text)?.into(),
                "validFrom" | "validUntil" => millis(column, text)?.into(),
                "maxScans" => text.parse::<u32>().map_err(|_| "maxScans is no number".to_owned())?.into(),
                _ => text.as_str().into(),
            };
            body.insert(column.to_owned(), value);
        }
        self.item(body)
    }

    fn parse_json(&self, record: &[u8]) -> Result<Item, String> {
        let object = serde_json::from_slice(record)
            .map_err(|error| format!("the line is not a JSON object: {error}"))?;
        self.item(object)
    }

    /// Names members as the API does, and takes those of a Thing out.
    fn item(&self, mut body: Map<String, Value>) -> Result<Item, String> {
        if !body.contains_key("platformId")
            && let Some(alias) = body.remove("evrythngId")
        {
            body.insert("platformId".to_owned(), alias);
        }
        if let Some(alias) = body.remove("target") {
            body.entry("defaultRedirectUrl").or_insert(alias);
        }
        let serial = text_of(&mut body, SERIAL)?;
        let (name, product) = match &serial {
            Some(_) => (text_of(&mut body, "name")?, text_of(&mut body, "product")?),
            None => {
                body.remove("name");
                body.remove("product");
                (None, None)
            }
        };
        if body.contains_key("platformId") {
            return Ok(Item { body, ..Item::default() });
        }
        let thing = serial.map(|serial| Named { serial, product, name });
        if let (None, Some(platform_id)) = (&thing, &self.platform_id) {
            body.insert("platformId".to_owned(), platform_id.as_str().into());
        }
        Ok(Item { body, thing, ..Item::default() })
    }
}

/// The names of the columns.
pub(super) fn header(header: Option<Record>, delimiter: u8) -> Result<Vec<String>, String> {
    match header.map(|header| header.content) {
        None => Err("the file is empty: its first line must name the columns".to_owned()),
        Some(Err(fault)) => Err(format!("the first line must name the columns: {}", fault.reason)),
        Some(Ok(bytes)) => fields(&bytes, delimiter).map_err(|reason| format!("the first line: {reason}")),
    }
}

/// Columns that have no meaning beside the others.
fn drop_columns(columns: &mut [Option<&'static str>], names: &[&str]) {
    for column in columns {
        *column = column.filter(|column| !names.contains(column));
    }
}

/// Takes a text out of a row.
fn text_of(body: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match body.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{name} must be a text")),
    }
}

/// The fields of one CSV record, without blanks around them.
pub(super) fn fields(record: &[u8], delimiter: u8) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
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

/// Which numbers are status codes of redirects is said where the redirection is checked.
fn status_code(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "statusCode is no number".to_owned())
}

fn millis(column: &str, text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("{column} is no whole number of milliseconds since 1970"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn header(text: &str, platform_id: Option<&str>) -> Result<Rows, String> {
        let record = Record { line: 1, content: Ok(text.as_bytes().to_vec()) };
        Rows::csv(Some(record), delimiter(text.as_bytes()), platform_id.map(str::to_owned))
    }

    fn body(rows: &Rows, record: &[u8]) -> Result<Value, String> {
        rows.parse(record).map(|item| Value::Object(item.body))
    }

    #[test]
    fn lines_become_elements() {
        let rows = header("shortId, EvrythngId,defaultRedirectUrl,forwardQuery,note", None).unwrap();
        assert_eq!(rows.ignored(), ["note"]);
        let whole = json!({"shortId": "A1", "platformId": "U", "defaultRedirectUrl": "https://a/?b=\"c\"",
            "forwardQuery": true});
        let blanks = json!({"platformId": "U", "defaultRedirectUrl": "https://a"});
        for (line, expected, why) in [
            (&b"A1,U,\"https://a/?b=\"\"c\"\"\",1,x"[..], Ok(whole), "all columns"),
            (b" ,U,https://a,,", Ok(blanks), "blanks are absent"),
            (b"A1,U,https://a,maybe,", Err("forwardQuery is neither true nor false"), "a truth value"),
            (b"A1,U,https://a", Err("the line has 3 fields, the header 5"), "too few"),
            (b"A1,\xff,https://a,,", Err("the line is not UTF-8"), "Latin-1"),
        ] {
            assert_eq!(body(&rows, line), expected.map_err(str::to_owned), "{why}");
        }
    }

    #[test]
    fn times_and_status_codes_are_numbers() {
        let rows = header(
            "platformId,defaultRedirectUrl,validFrom,validUntil,status,endedUrl,statusCode,maxScans",
            None,
        )
        .unwrap();
        let whole = json!({"platformId": "U", "defaultRedirectUrl": "https://a", "validFrom": 5, "validUntil": 9,
            "status": "paused", "endedUrl": "https://b", "statusCode": 301, "maxScans": 7});
        let always = json!({"platformId": "U", "defaultRedirectUrl": "https://a", "status": "active"});
        let fault = "validUntil is no whole number of milliseconds since 1970";
        for (line, expected) in [
            ("U,https://a,5,9,paused,https://b,301,7", Ok(whole)),
            ("U,https://a,,,active,,,", Ok(always)),
            ("U,https://a,,2026-11-27,,,,", Err(fault.to_owned())),
            ("U,https://a,,,,,moved,", Err("statusCode is no number".to_owned())),
            ("U,https://a,,,,,,many", Err("maxScans is no number".to_owned())),
        ] {
            assert_eq!(body(&rows, line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn rows_with_a_serial_name_a_thing() {
        let rows = header("name;product;gs1:21;target;platformId", Some("P")).unwrap();
        let named = |name: Option<&str>| {
            let (serial, product) = ("S1".to_owned(), Some("gs1:01:9".to_owned()));
            Some(Named { serial, product, name: name.map(str::to_owned) })
        };
        for (line, thing, platform_id, why) in [
            ("Bag;gs1:01:9;S1;https://a;", named(Some("Bag")), None, "the Thing is found or made"),
            (";gs1:01:9;S1;https://a;", named(None), None, "the serial is its name"),
            ("Bag;gs1:01:9;S1;https://a;U", None, Some("U"), "the row says whose it is"),
            ("Bag;gs1:01:9;;https://a;", None, Some("P"), "without a serial there is no Thing"),
        ] {
            let item = rows.parse(line.as_bytes()).unwrap();
            assert_eq!(item.thing, thing, "{why}");
            assert_eq!(item.body.get("platformId").and_then(Value::as_str), platform_id, "{why}");
            assert_eq!(item.body["defaultRedirectUrl"], "https://a", "{why}");
        }
        let rows = header("platformId,name,defaultRedirectUrl,target", None).unwrap();
        assert_eq!(rows.ignored(), ["name", "target"], "without serials no Thing is made");
    }

    #[test]
    fn delimiters_are_told_by_the_columns_that_are_known() {
        for (text, expected) in [
            ("platformId,defaultRedirectUrl", b','),
            ("platformId;defaultRedirectUrl;note, more, and more", b';'),
            ("platformId\tdefaultRedirectUrl", b'\t'),
            ("\"platformId\";\"target\"", b';'),
            ("nothing;known", b','),
        ] {
            assert_eq!(delimiter(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn headers_must_name_what_is_required() {
        for (line, platform_id, fault) in [
            ("defaultRedirectUrl,platformId", None, None),
            ("defaultRedirectUrl", Some("U"), None),
            ("target;gs1:21", None, None),
            ("defaultRedirectUrl", None, Some("platformId")),
            ("platformId,url", None, Some("defaultRedirectUrl")),
        ] {
            let found = header(line, platform_id).err();
            assert_eq!(found.is_some(), fault.is_some(), "{line}: {found:?}");
            assert!(found.unwrap_or_default().contains(fault.unwrap_or_default()), "{line}");
        }
        assert!(Rows::csv(None, b',', None).unwrap_err().contains("empty"));
    }

    #[test]
    fn json_lines_get_the_default_resource() {
        let rows = Rows::ndjson(Some("U".to_owned()));
        for (line, expected) in [
            (
                &br#"{"defaultRedirectUrl":"x"}"#[..],
                Some(json!({"defaultRedirectUrl": "x", "platformId": "U"})),
            ),
            (br#"{"evrythngId":"V"}"#, Some(json!({"platformId": "V"}))),
            (b"[]", None),
            (b"{", None),
        ] {
            assert_eq!(body(&rows, line).ok(), expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
