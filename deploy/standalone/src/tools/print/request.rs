//! The body of an order from flags.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::config::ConfigError;

/// What an order asks for; for more than this there is the JSON file.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Wanted {
    /// Print the codes that meet this filter of redirections, such as product=ID
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Print the codes of these short ids
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    short_ids: Vec<String>,
    /// Print the codes that the lines of this CSV or NDJSON file name, by shortId or serial; it is uploaded
    #[arg(long, value_name = "FILE")]
    codes_file: Option<PathBuf>,
    /// Make Things of this product, and print their codes; needs --count and --to
    #[arg(long, value_name = "ID")]
    product: Option<String>,
    /// How many
    #[arg(long, value_name = "N", requires = "product")]
    count: Option<u64>,
    /// Where their links lead
    #[arg(long, value_name = "URL", requires = "product")]
    to: Option<String>,
    /// Random serials that nobody guesses, not numbers
    #[arg(long, requires = "product")]
    random: bool,
    /// First number [default: the one behind the last order's]
    #[arg(long, value_name = "N", requires = "product")]
    start: Option<u64>,
    /// Digits of a number, filled with zeros
    #[arg(long, value_name = "N", requires = "product")]
    digits: Option<u64>,
    /// What stands before each serial
    #[arg(long, value_name = "TEXT", requires = "product")]
    prefix: Option<String>,
    /// Short domain [default: the account's first]
    #[arg(long, value_name = "HOST")]
    short_domain: Option<String>,
    /// Format: png, svg, pdf, eps, tiff (a ZIP of files), pdf-pages, pdf-sheets or zpl
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Sheet or roll of labels, such as a4-63.5x38.1
    #[arg(long, value_name = "NAME")]
    size: Option<String>,
    /// Names of files in a ZIP, such as {serial}_{shortId}
    #[arg(long, value_name = "TEMPLATE")]
    naming: Option<String>,
    /// Text below each code: none, shortId, serial or gs1
    #[arg(long, value_name = "TEXT")]
    hri: Option<String>,
    /// Width of a module in millimetres
    #[arg(long, value_name = "MM")]
    module_mm: Option<f64>,
    /// What each code says: short, or gs1dl for the GS1 Digital Link
    #[arg(long, value_name = "WHAT")]
    payload: Option<String>,
    /// Dots per inch of the printer
    #[arg(long, value_name = "DPI")]
    dpi: Option<u32>,
    /// Wait for edges: none, report or require [default: report]
    #[arg(long, value_name = "HOW")]
    wait_for_edges: Option<String>,
    /// What people call the order
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
}

impl Wanted {
    /// Whether no flag was given.
    pub(super) fn is_empty(&self) -> bool {
        self.is_name() && self.name.is_none()
    }

    /// Whether no flag was given but the name.
    pub(super) fn is_name(&self) -> bool {
        let has_members = self.members().keys().any(|key| key != "name");
        !has_members && self.short_domain.is_none() && self.sources("").is_empty()
    }

    /// What people call the order.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The file that names the codes.
    pub(super) fn codes_file(&self) -> Option<&Path> {
        self.codes_file.as_deref()
    }

    /// The body; `location` is where the file of codes was uploaded to.
    ///
    /// # Errors
    /// There is not exactly one source.
    pub(super) fn body(&self, location: &str) -> Result<Value, ConfigError> {
        let mut sources = self.sources(location);
        let (Some(source), true) = (sources.pop(), sources.is_empty()) else {
            let reason =
                "give a JSON file, or exactly one of --filter, --short-ids, --codes-file and --product";
            return Err(ConfigError::new("FILE", reason));
        };
        if self.short_domain.is_some() && self.filter.is_some() {
            let reason = "a filter names its domain itself: add shortDomain=HOST to it";
            return Err(ConfigError::new("--short-domain", reason));
        }
        let mut body = self.members();
        body.insert("source".to_owned(), source);
        Ok(Value::Object(body))
    }

    fn sources(&self, location: &str) -> Vec<Value> {
        let mut sources = Vec::new();
        if let Some(filter) = &self.filter {
            sources.push(json!({"filter": filter}));
        }
        if !self.short_ids.is_empty() {
            let mut list = json!({"shortIds": self.short_ids});
            set(&mut list, "shortDomain", self.short_domain.as_ref());
            sources.push(json!({"list": list}));
        }
        if let Some(path) = &self.codes_file {
            let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
            let is_json = ending.is_some_and(|ending| ["ndjson", "jsonl"].contains(&ending.as_str()));
            let mut file = json!({"location": location, "format": if is_json { "NDJSON" } else { "CSV" }});
            set(&mut file, "shortDomain", self.short_domain.as_ref());
            sources.push(json!({"file": file}));
        }
        if let Some(product) = &self.product {
            let form = if self.random { "random" } else { "numbered" };
            let mut serials = json!({"product": product, "form": form});
            set(&mut serials, "count", self.count);
            set(&mut serials, "defaultRedirectUrl", self.to.as_ref());
            set(&mut serials, "start", self.start);
            set(&mut serials, "digits", self.digits);
            set(&mut serials, "prefix", self.prefix.as_ref());
            set(&mut serials, "shortDomain", self.short_domain.as_ref());
            sources.push(json!({"serials": serials}));
        }
        sources
    }

    /// The members beside the source.
    fn members(&self) -> Map<String, Value> {
        let mut body = json!({});
        set(&mut body, "name", self.name.as_ref());
        set(&mut body, "format", self.format.as_ref());
        set(&mut body, "layout", self.size.as_ref().map(|size| json!({"size": size})));
        set(&mut body, "naming", self.naming.as_ref());
        set(&mut body, "hri", self.hri.as_ref().map(|text| json!({"text": text})));
        let mut code = json!({});
        set(&mut code, "moduleMm", self.module_mm);
        set(&mut code, "payload", self.payload.as_ref());
        set(&mut body, "code", Some(code).filter(|code| *code != json!({})));
        set(&mut body, "dpi", self.dpi);
        set(&mut body, "waitForEdges", self.wait_for_edges.as_ref());
        match body {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

/// Sets a member that was given.
fn set<T: serde::Serialize>(object: &mut Value, name: &str, value: Option<T>) {
    if let Some(value) = value {
        object[name] = json!(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_the_members_of_an_order() {
        let wanted = Wanted {
            product: Some("P".to_owned()),
            count: Some(5),
            to: Some("https://e.com".to_owned()),
            prefix: Some("A".to_owned()),
            format: Some("png".to_owned()),
            size: Some("roll-25x25".to_owned()),
            module_mm: Some(0.5),
            payload: Some("gs1dl".to_owned()),
            ..Wanted::default()
        };
        let expected = json!({"source": {"serials": {"product": "P", "form": "numbered", "count": 5,
            "defaultRedirectUrl": "https://e.com", "prefix": "A"}}, "format": "png",
            "layout": {"size": "roll-25x25"}, "code": {"moduleMm": 0.5, "payload": "gs1dl"}});
        assert_eq!(wanted.body("").unwrap(), expected);
        assert!(!wanted.is_empty() && Wanted::default().is_empty() && Wanted::default().body("").is_err());
        let two = Wanted { filter: Some("tags=a".to_owned()), ..wanted };
        assert!(two.body("").is_err(), "two sources");
        let list = Wanted {
            short_ids: vec!["A".to_owned()],
            short_domain: Some("tn.gg".to_owned()),
            ..Wanted::default()
        };
        let expected = json!({"source": {"list": {"shortIds": ["A"], "shortDomain": "tn.gg"}}});
        assert_eq!(list.body("").unwrap(), expected);
        for (path, form) in [("codes.csv", "CSV"), ("codes.JSONL", "NDJSON"), ("codes", "CSV")] {
            let file = Wanted { codes_file: Some(path.into()), ..Wanted::default() };
            let expected = json!({"source": {"file": {"location": "https://e.com/f", "format": form}}});
            assert_eq!(file.body("https://e.com/f").unwrap(), expected);
            assert!(!file.is_name() && file.codes_file().is_some());
        }
        let of = |filter: Option<&str>| Wanted {
            filter: filter.map(str::to_owned),
            short_domain: Some("tn.gg".to_owned()),
            ..Wanted::default()
        };
        assert!(of(Some("tags=a")).body("").is_err(), "a filter has a domain of its own");
        assert!(!of(None).is_name() && !of(None).is_empty(), "a domain is for a new order");
        let named = Wanted { name: Some("n".to_owned()), ..Wanted::default() };
        assert!(named.is_name() && !named.is_empty());
    }
}
