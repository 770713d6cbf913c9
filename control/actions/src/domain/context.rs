//! The `context` of an action, and its location where the client gives none.

use std::net::IpAddr;

use serde_json::{Map, Value};
use shared::{
    geo::Locality,
    wire::scan::{MAX_LANGUAGE, MAX_USER_AGENT, cut, is_language},
};

pub use shared::user_agent::{Agent, read_agent};

use super::{limits, location::Coordinates, members::Members};

/// The client of a request, unparsed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The client's address.
    pub ip: Option<IpAddr>,
    /// `User-Agent`.
    pub user_agent: Option<&'a str>,
    /// `Referer`, without `access_token`.
    pub referer: Option<&'a str>,
    /// The preferred language of `Accept-Language`.
    pub language: Option<&'a str>,
}

/// The customer whose scan a server reports: `context` in the body of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// `ipAddress`.
    pub ip: Option<IpAddr>,
    /// `userAgent`, 1 to [`MAX_USER_AGENT`] bytes of it.
    pub user_agent: Option<String>,
    /// `language`: a tag of at most [`MAX_LANGUAGE`] bytes.
    pub language: Option<String>,
}

impl Reported {
    /// Parses `context`; members that follow from the address, such as `city`, cannot be set.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(value: &Value) -> Result<Self, Vec<String>> {
        const KNOWN: [&str; 3] = ["ipAddress", "userAgent", "language"];
        let mut members = Members::within(value, "context")?;
        for name in members.names().filter(|name| !KNOWN.contains(name)) {
            let path = members.path(limits::shorten(name));
            members.fault(format!("{path} cannot be reported; ipAddress, userAgent and language can."));
        }
        let ip = members.parsed::<IpAddr>("ipAddress").map(|ip| ip.to_canonical());
        let user_agent = members.text("userAgent");
        if user_agent.is_some_and(|text| text.is_empty() || text.chars().any(char::is_control)) {
            members.fault("context.userAgent must have printable characters.");
        }
        let language = members.text("language");
        if language.is_some_and(|tag| tag.len() > MAX_LANGUAGE || !is_language(tag)) {
            members.fault(format!(
                "context.language must be one language tag such as de-CH: letters, digits and hyphens, at most \
                 {MAX_LANGUAGE}."
            ));
        }
        if members.raw("ipAddress").is_none() && members.raw("userAgent").is_none() {
            members.fault("context must have ipAddress or userAgent.");
        }
        let user_agent = user_agent.map(|text| cut(text, MAX_USER_AGENT).to_owned());
        let language = language.map(str::to_owned);
        members.finish(Some(Self { ip, user_agent, language }))
    }

    /// The customer in place of the server.
    #[must_use]
    pub fn origin(&self) -> Origin<'_> {
        let language = self.language.as_deref();
        Origin { ip: self.ip, user_agent: self.user_agent.as_deref(), referer: None, language }
    }
}

/// Most digits of a major version: more are no version.
const MAJOR_DIGITS: usize = 4;

/// A user agent reduced to names and major versions, such as `Safari/17 (iPhone/17)`; `None` when nothing is known from it.
#[must_use]
pub fn reduced_agent(parser: &woothee::parser::Parser, user_agent: &str) -> Option<String> {
    let found = parser.parse(user_agent)?;
    let part = |name: &str, version: &str| {
        let end = version.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(version.len());
        let major = version.get(..end).filter(|digits| (1..=MAJOR_DIGITS).contains(&digits.len()));
        match major {
            _ if name == "UNKNOWN" => None,
            Some(major) => Some(format!("{name}/{major}")),
            None => Some(name.to_owned()),
        }
    };
    match (part(found.name, found.version), part(found.os, &found.os_version)) {
        (Some(agent), Some(system)) => Some(format!("{agent} ({system})")),
        (agent, system) => agent.or_else(|| Some(format!("({})", system?))),
    }
}

/// The member `context` of an action.
#[must_use]
pub fn context(origin: Origin<'_>, agent: Agent<'_>, locality: &Locality) -> Map<String, Value> {
    let ip = origin.ip.map(|ip| ip.to_string());
    let members = [
        ("ipAddress", ip.as_deref()),
        ("city", locality.city.as_deref()),
        ("region", locality.region.as_deref()),
        ("countryCode", locality.country_code.as_deref()),
        ("timeZone", locality.time_zone.as_deref()),
        ("userAgent", origin.user_agent),
        ("userAgentName", agent.name),
        ("operatingSystemName", agent.system),
        ("referer", origin.referer),
        ("language", origin.language),
    ];
    members.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into()))).collect()
}

/// The member `location` of an action whose client gives none, if the address has a known position.
#[must_use]
pub fn location(locality: &Locality) -> Option<Map<String, Value>> {
    let (latitude, longitude) = locality.position?;
    Coordinates::new(latitude, longitude).map(Coordinates::members)
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_major_versions_are_left_of_a_user_agent() {
        let parser = woothee::parser::Parser::new();
        for (agent, reduced) in [
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
                Some("Safari/17 (iPhone/17)"),
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.6478.122 Mobile Safari/537.36",
                Some("Chrome/126 (Android/14)"),
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0",
                Some("Firefox/128 (Windows 10)"),
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/1234567890.1 Safari/537.36",
                Some("Chrome (Windows 10)"),
            ),
            ("warehouse-scanner-of-Jane/7.1", None),
            ("", None),
        ] {
            assert_eq!(reduced_agent(&parser, agent).as_deref(), reduced, "{agent}");
        }
    }

    #[test]
    fn a_reported_customer_has_an_address_an_agent_or_both() {
        let long = "a".repeat(MAX_USER_AGENT + 1);
        for (value, ip, agent, language) in [
            (json!({"ipAddress": "203.0.113.7"}), Some("203.0.113.7"), None, None),
            (
                json!({"ipAddress": "::ffff:203.0.113.7", "userAgent": "x/1", "language": "de-CH"}),
                Some("203.0.113.7"),
                Some("x/1"),
                Some("de-CH"),
            ),
            (json!({"ipAddress": null, "userAgent": long}), None, Some(&long[..MAX_USER_AGENT]), None),
        ] {
            let reported = Reported::parse(&value).unwrap();
            let ip = ip.map(|ip| ip.parse().unwrap());
            let expected = Origin { ip, user_agent: agent, referer: None, language };
            assert_eq!(reported.origin(), expected, "{value}");
        }
        for (value, faults) in [
            (json!("x"), vec!["context must be an object"]),
            (json!({}), vec!["context must have ipAddress or userAgent"]),
            (
                json!({"ipAddress": "x", "userAgent": ""}),
                vec!["context.ipAddress: ", "context.userAgent must"],
            ),
            (
                json!({"ipAddress": 7, "userAgent": "a\0"}),
                vec!["context.ipAddress must", "context.userAgent must"],
            ),
            (json!({"ipAddress": "203.0.113.7", "city": "Bern"}), vec!["context.city cannot be reported"]),
            (json!({"language": "de"}), vec!["context must have ipAddress or userAgent"]),
            (json!({"userAgent": "x", "language": 7}), vec!["context.language must"]),
            (json!({"userAgent": "x", "language": ""}), vec!["context.language must be one language tag"]),
            (json!({"userAgent": "x", "language": "de,fr;q=0.9"}), vec!["context.language must be one"]),
            (json!({"userAgent": "x", "language": "a".repeat(17)}), vec!["context.language must be one"]),
        ] {
            assert_faults(&value, Reported::parse, &faults);
        }
    }

    #[test]
    fn the_context_has_what_is_known() {
        assert_eq!(context(Origin::default(), Agent::default(), &Locality::default()), Map::new());
        let origin = Origin {
            ip: "192.0.2.7".parse().ok(),
            user_agent: Some("x/1"),
            referer: Some("http://r"),
            language: Some("de"),
        };
        let locality = Locality {
            city: Some("Bern".to_owned()),
            region: Some("BE".to_owned()),
            country_code: Some("CH".to_owned()),
            time_zone: Some("Europe/Zurich".to_owned()),
            as_number: Some(3303),
            position: Some((46.9, 7.4)),
        };
        let agent = Agent { name: Some("X"), system: Some("Y"), bot: false };
        let expected = json!({"ipAddress": "192.0.2.7", "city": "Bern", "region": "BE", "countryCode": "CH",
            "timeZone": "Europe/Zurich", "userAgent": "x/1", "userAgentName": "X", "operatingSystemName": "Y",
            "referer": "http://r", "language": "de"});
        assert_eq!(Value::Object(context(origin, agent, &locality)), expected);
        assert_eq!(location(&locality).map(|found| found["latitude"].clone()), Some(json!(46.9)));
    }
}
