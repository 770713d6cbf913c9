//! Which codes an order prints.

use kernel::domain::{filter::Filter, listing::REDIRECTIONS, members::Members};
use serde_json::Value;
use shared::{id::ThngId, short_id::ShortId};

use super::{
    input::Form,
    serials::{Serials, refuse_others},
};

/// Most ids of a list: they are looked up while the caller waits.
pub const MAX_LISTED: usize = 5_000;

/// The ways to name codes.
const WAYS: [&str; 4] = ["list", "filter", "file", "serials"];

/// Which codes an order prints.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Those of these short ids of a domain, in this order.
    ShortIds {
        /// The short ids.
        ids: Vec<ShortId>,
        /// Their domain; `None` is the account's first.
        domain: Option<String>,
    },
    /// The oldest one of each of these Thngs, in this order.
    Thngs(Vec<ThngId>),
    /// Those that meet a filter of redirections, oldest first.
    Filter(Filter),
    /// Those of the lines of an uploaded file, in its order.
    File(FileSource),
    /// Those that the order makes.
    Serials(Serials),
}

/// A file of the account that names codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSource {
    /// Its `contentUrl`.
    pub location: String,
    /// What it is made of.
    pub form: Form,
    /// The domain of its short ids; `None` is the account's first.
    pub short_domain: Option<String>,
}

impl Source {
    /// Reads `source`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(value: &Value, max_codes: u64) -> Result<Self, Vec<String>> {
        let mut members = Members::within(value, "source")?;
        refuse_others(&mut members, &WAYS);
        let named: Vec<&str> = WAYS.into_iter().filter(|way| members.raw(way).is_some()).collect();
        let [way] = named.as_slice() else {
            members.fault("source must have exactly one of list, filter, file and serials.");
            return members.finish(None);
        };
        let Some(value) = members.raw(way) else { return members.finish(None) };
        let source = match *way {
            "list" => list(value, max_codes),
            "filter" => filter(value),
            "file" => file(value),
            _ => Serials::parse(value, max_codes).map(Self::Serials),
        };
        let source = source.map_err(|faults| faults.into_iter().for_each(|fault| members.fault(fault))).ok();
        members.finish(source)
    }
}

fn filter(value: &Value) -> Result<Source, Vec<String>> {
    let text = value.as_str().ok_or_else(|| vec!["source.filter must be a string.".to_owned()])?;
    let filter = Filter::parse(text, REDIRECTIONS.fields);
    filter.map(Source::Filter).map_err(|fault| vec![format!("source.filter: {fault}")])
}

fn file(value: &Value) -> Result<Source, Vec<String>> {
    let mut members = Members::within(value, "source.file")?;
    refuse_others(&mut members, &["location", "format", "shortDomain"]);
    for name in ["location", "format"] {
        if members.raw(name).is_none() {
            let path = members.path(name);
            members.fault(format!("{path} is required."));
        }
    }
    let location = members.text("location").map(str::to_owned);
    let form = members.text("format").and_then(|text| {
        let form = Form::UPLOADS.iter().find(|(name, _)| *name == text).map(|(_, form)| *form);
        if form.is_none() {
            members.fault("source.file.format must be CSV or NDJSON.");
        }
        form
    });
    let short_domain = members.text("shortDomain").map(str::to_ascii_lowercase);
    let file = location.zip(form);
    members.finish(file.map(|(location, form)| Source::File(FileSource { location, form, short_domain })))
}

fn list(value: &Value, max_codes: u64) -> Result<Source, Vec<String>> {
    let mut members = Members::within(value, "source.list")?;
    refuse_others(&mut members, &["shortIds", "thngs", "shortDomain"]);
    let most = usize::try_from(max_codes).unwrap_or(usize::MAX).min(MAX_LISTED);
    let domain = members.text("shortDomain").map(str::to_ascii_lowercase);
    let source = match (members.raw("shortIds").is_some(), members.raw("thngs").is_some()) {
        (true, false) => ids(&mut members, "shortIds", most, "no short id")
            .map(|ids| Source::ShortIds { ids, domain: domain.clone() }),
        (false, true) => {
            if domain.is_some() {
                members.fault("source.list.shortDomain is for short ids only.");
            }
            ids(&mut members, "thngs", most, "no id of a Thng").map(Source::Thngs)
        }
        (false, false) | (true, true) => {
            members.fault("source.list must have exactly one of shortIds and thngs.");
            None
        }
    };
    members.finish(source)
}

/// The ids of a list; of those that are none, the first ten are named.
fn ids<T: std::str::FromStr>(
    members: &mut Members<'_>,
    name: &str,
    most: usize,
    not: &str,
) -> Option<Vec<T>> {
    let path = members.path(name);
    let texts = members.texts(name)?;
    if texts.is_empty() || texts.len() > most {
        members.fault(format!("{path} must have 1 to {most} ids; for more, use a filter."));
        return None;
    }
    let parsed: Vec<Option<T>> = texts.iter().map(|text| text.parse().ok()).collect();
    let bad = parsed.iter().enumerate().filter(|(_, id)| id.is_none()).take(10);
    let bad: Vec<String> = bad.map(|(at, _)| format!("{path}[{at}] is {not}.")).collect();
    bad.into_iter().for_each(|fault| members.fault(fault));
    parsed.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    #[test]
    fn each_fault_is_named() {
        for (value, expected) in [
            (json!({"list": {"shortIds": ["K7Q2", "k7q2"], "shortDomain": "tn.gg"}}), vec![]),
            (json!({"list": {"thngs": [ID]}, "filter": null}), vec![]),
            (json!({"filter": "tags=summer"}), vec![]),
            (json!("list"), vec!["source must be an object"]),
            (json!({}), vec!["exactly one of list, filter, file and serials"]),
            (json!({"filter": "tags=a", "list": {"thngs": [ID]}}), vec!["exactly one of"]),
            (json!({"files": 1, "filter": "tags=a"}), vec!["source.files is not a member"]),
            (json!({"file": {"location": "https://e.com/files/x/content", "format": "CSV"}}), vec![]),
            (
                json!({"file": {"format": "XLS", "columns": 3}}),
                vec![
                    "source.file.columns is not",
                    "source.file.location is required",
                    "format must be CSV or NDJSON",
                ],
            ),
            (json!({"filter": 1}), vec!["source.filter must be a string"]),
            (json!({"filter": "colour=red"}), vec!["source.filter: "]),
            (json!({"list": {}}), vec!["exactly one of shortIds and thngs"]),
            (json!({"list": {"thngs": [ID], "shortIds": ["A"]}}), vec!["exactly one of shortIds and thngs"]),
            (json!({"list": {"thngs": [ID], "shortDomain": "tn.gg"}}), vec!["for short ids only"]),
            (json!({"list": {"thngs": []}}), vec!["must have 1 to 2 ids"]),
            (json!({"list": {"thngs": [ID, ID, ID]}}), vec!["must have 1 to 2 ids"]),
            (json!({"list": {"thngs": [ID, "x"], "more": 1}}), vec!["list.more is not", "thngs[1] is no id"]),
            (json!({"list": {"shortIds": ["a b", "/"]}}), vec!["shortIds[0]", "shortIds[1]"]),
            (json!({"serials": {}}), vec!["product is", "count is", "form is", "defaultRedirectUrl is"]),
        ] {
            assert_faults(&value, |value| Source::parse(value, 2), &expected);
        }
    }
}
