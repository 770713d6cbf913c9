//! The body of `POST /projects/{id}/scanCounts`: scans of a demo, which no edge recorded.

use kernel::domain::{limits::integer, members::Members, property::MAX_TIME_MS};
use serde_json::Value;
use shared::{
    id::{AccountId, ProductId, ProjectId},
    short_id::ShortId,
    standing::Authenticity,
    time::UnixMillis,
};

use super::{counted_scan::CountedScan, labels};

/// Most entries of a request: as many as the backfill counts in a step on SQLite, where other changes wait meanwhile.
pub const MAX_ENTRIES: usize = 200;

/// Most scans that an entry stands for.
pub const MAX_COUNT: u32 = 1_000_000;

/// How far ahead of the server a scan may be: the clock of whoever counts may go wrong by as much.
pub const MAX_AHEAD_MS: i64 = 24 * 60 * 60 * 1_000;

/// Longest name of a region, a city, a system or a language, in characters.
pub const MAX_TEXT: usize = 64;

/// Longest host of a link, in bytes: that of DNS.
pub const MAX_HOST: usize = 253;

/// A scan, or several that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedScan {
    at: UnixMillis,
    count: u32,
    /// Whether the first of them is by a device that is new on its day.
    pub is_new_device: bool,
    product: Option<ProductId>,
    link: String,
    country: String,
    region: String,
    city: String,
    system: String,
    language: String,
    verdict: &'static str,
}

impl ReportedScan {
    /// Reads a body.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Vec<Self>, Vec<String>> {
        let mut members = Members::of(body)?;
        let Some(listed) = members.typed("scans", "an array of objects", Value::as_array) else {
            if members.raw("scans").is_none() {
                members.fault("scans is required.");
            }
            return members.finish(None);
        };
        if !(1..=MAX_ENTRIES).contains(&listed.len()) {
            members.fault(format!("scans must have 1 to {MAX_ENTRIES} entries, not {}.", listed.len()));
            return members.finish(None);
        }
        let mut scans = Vec::with_capacity(listed.len());
        for (at, value) in listed.iter().enumerate() {
            match entry(value, &format!("scans[{at}]")) {
                Ok(scan) => scans.push(scan),
                Err(faults) => faults.into_iter().for_each(|fault| members.fault(fault)),
            }
        }
        members.finish(Some(scans))
    }

    /// When it was.
    #[must_use]
    pub const fn at(&self) -> UnixMillis {
        self.at
    }

    /// How many scans these are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The product, if it says one.
    #[must_use]
    pub const fn product(&self) -> Option<ProductId> {
        self.product
    }

    /// The short URL without its scheme; empty if it says none.
    #[must_use]
    pub fn link(&self) -> &str {
        &self.link
    }

    /// The scan as it is counted, of a project.
    #[must_use]
    pub fn counted(&self, account: AccountId, project: ProjectId) -> CountedScan {
        CountedScan {
            account,
            at: self.at,
            projects: vec![project],
            product: self.product,
            link: self.link.clone(),
            gtin: String::new(),
            lot: String::new(),
            country: self.country.clone(),
            region: self.region.clone(),
            city: self.city.clone(),
            system: self.system.clone(),
            language: self.language.clone(),
            verdict: self.verdict,
            is_robot: false,
            count: self.count,
            device: None,
        }
    }
}

fn entry(value: &Value, name: &str) -> Result<ReportedScan, Vec<String>> {
    let mut members = Members::within(value, name)?;
    if members.raw("timestamp").is_none() {
        let path = members.path("timestamp");
        members.fault(format!("{path} is required: milliseconds since 1970."));
    }
    let at = members.typed("timestamp", "milliseconds since 1970", |value| {
        integer(value).filter(|at| (0..=MAX_TIME_MS).contains(at))
    });
    let count = members.typed("count", &format!("a whole number from 1 to {MAX_COUNT}"), |value| {
        u32::try_from(integer(value)?).ok().filter(|count| (1..=MAX_COUNT).contains(count))
    });
    let is_new_device = members.boolean("newDevice").unwrap_or_default();
    let product = members.typed("product", "the id of a product", |value| value.as_str()?.parse().ok());
    let link = members
        .typed("link", "a short URL without its scheme, such as tn.gg/K7Q2", |value| {
            value.as_str().filter(|link| is_link(link))
        })
        .unwrap_or_default()
        .to_owned();
    let country = members.typed("country", "two capital letters", |value| {
        value.as_str().filter(|code| code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()))
    });
    let country = labels::country(country);
    let mut text = |name: &str| {
        members.typed(name, &format!("a text of at most {MAX_TEXT} characters, without U+0000"), |value| {
            value.as_str().filter(|text| text.chars().count() <= MAX_TEXT && !text.contains('\0'))
        })
    };
    let [region, city, system] = ["region", "city", "system"].map(|name| labels::name(text(name)));
    let language = labels::language(text("language"));
    let verdicts = Authenticity::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", ");
    let verdict = members.typed("verdict", &format!("one of {verdicts}"), |value| {
        value.as_str()?.parse::<Authenticity>().ok()
    });
    members.finish(at.map(|at| ReportedScan {
        at: UnixMillis(at),
        count: count.unwrap_or(1),
        is_new_device,
        product,
        link,
        country,
        region,
        city,
        system,
        language,
        verdict: verdict.map_or("", |verdict| verdict.as_str()),
    }))
}

/// Whether a text is a host, a slash and a short id.
fn is_link(text: &str) -> bool {
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte);
    text.split_once('/').is_some_and(|(host, short_id)| {
        (1..=MAX_HOST).contains(&host.len())
            && host.bytes().all(is_of_host)
            && short_id.parse::<ShortId>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scan_is_read_with_all_it_says() {
        let body = json!({"scans": [{"timestamp": 5, "count": 3, "newDevice": true, "country": "DE",
            "region": "Berlin", "system": "Android", "language": "de-DE", "link": "tn.gg/K7Q2",
            "verdict": "negative", "product": "UKXAGyEf8SQ5eTDmVgGpHqAa"}, {"timestamp": 6, "city": null}]});
        let found = ReportedScan::parse(&body).unwrap();
        let (account, project) = (AccountId::new(1, [1; 16]), ProjectId::new(1, [2; 16]));
        let first = found[0].counted(account, project);
        assert_eq!((first.at.0, first.count, found[0].is_new_device), (5, 3, true));
        assert_eq!((first.country.as_str(), first.region.as_str()), ("DE", "Berlin"));
        assert_eq!((first.language.as_str(), first.verdict), ("de", "negative"));
        assert_eq!((first.link.as_str(), first.projects), ("tn.gg/K7Q2", vec![project]));
        assert_eq!((found[1].count(), found[1].is_new_device), (1, false));
    }

    #[test]
    fn every_fault_is_named() {
        for (value, parts) in [
            (json!([]), vec!["JSON object"]),
            (json!({}), vec!["scans is required"]),
            (json!({"scans": {}}), vec!["scans must be an array"]),
            (json!({"scans": []}), vec!["1 to 200 entries, not 0"]),
            (json!({"scans": vec![json!({"timestamp": 1}); 201]}), vec!["not 201"]),
            (
                json!({"scans": [{"timestamp": 1}, 7, {"count": 0}]}),
                vec!["scans[1] must", "scans[2].timestamp is required", "scans[2].count"],
            ),
            (
                json!({"scans": [{"timestamp": -1, "country": "de", "link": "K7Q2", "verdict": "fine",
                    "product": "x", "city": "x".repeat(65), "newDevice": 1}]}),
                vec!["timestamp", "newDevice", "product", "link", "country", "city", "verdict"],
            ),
        ] {
            let faults = ReportedScan::parse(&value).unwrap_err();
            assert_eq!(faults.len(), parts.len(), "{faults:?}");
            for part in parts {
                assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
            }
        }
    }
}
