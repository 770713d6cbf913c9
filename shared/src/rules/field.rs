//! The fields that rules can test, their names, and where their values come from.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};
use jiff::tz::TimeZone;

use super::{headers::is_access_token, zone};
use crate::{
    filter::{Operator, Value},
    id::ProjectId,
    time::UnixMillis,
    user_agent::Device,
};

/// A field that a condition of a rule tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// One text, compared exactly.
    Text(Text),
    /// The projects that the redirection's scopes name.
    Project,
    /// The first language of `Accept-Language`: the whole tag or its first part, without case.
    Language,
    /// Any language of `Accept-Language` with a quality above 0, compared in the same way.
    Languages,
    /// The quality of one language there, 0 to 1.
    LanguageQuality(Box<str>),
    /// Host of `Referer`: a host or one below it, without case.
    RefererHost,
    /// The values of one parameter of the query.
    Query(Box<str>),
    /// The client's address: whether it is in a network.
    Network,
    /// Number of the autonomous system that the client's address is in.
    AsNumber,
    /// The visitor's place in the division with a name, in percent from 0 to 99.99.
    Percentage(Box<str>),
    /// Milliseconds since 1970.
    Timestamp,
    /// Hour of the day, 0 to 23; in UTC without a time zone.
    Hour(Option<TimeZone>),
    /// Day of the week, 1 (Monday) to 7 (Sunday); in UTC without a time zone.
    Weekday(Option<TimeZone>),
}

/// A text that is known of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Text {
    /// Id of the Thng behind.
    Thng,
    /// Name of the Thng behind.
    ThngName,
    /// Id of the product behind, or of the Thng's product.
    Product,
    /// The commissioning state of the Thng.
    CommissionState,
    /// `authenticationStatus` of its last assessment.
    Assessment,
    /// `counterfeitStatus` of it.
    Counterfeit,
    /// `grayMarketStatus` of it.
    GrayMarket,
    /// Type of the action: of a redirect always `implicitScans`.
    ActionType,
    /// ISO 3166-1 alpha-2 by the client's address; compared without case.
    Country,
    /// Name of the first subdivision of the country in English, by the client's address.
    Region,
    /// City in English by the client's address.
    City,
    /// Name of the browser or program.
    AgentName,
    /// Name of the operating system.
    SystemName,
    /// Kind of device, a word of [`Device`].
    Device,
    /// Host of the short domain; compared without case.
    ShortDomain,
    /// The short id as it was given out.
    ShortId,
}

/// Facts about one scan; expensive ones are computed when they are first needed.
pub trait Facts {
    /// One text; `None` when it is not known.
    fn text(&self, field: Text) -> Option<&str>;

    /// The projects that the redirection's scopes name.
    fn projects(&self) -> &[ProjectId];

    /// The first language that the client accepts, as it was sent.
    fn language(&self) -> Option<&str>;

    /// `Accept-Language` as it was sent.
    fn accept_language(&self) -> Option<&str>;

    /// `Referer` as it was sent.
    fn referer(&self) -> Option<&str>;

    /// The query of the request as it was sent, without `?`.
    fn query(&self) -> Option<&str>;

    /// The client's address.
    fn address(&self) -> Option<IpAddr>;

    /// Number of the autonomous system that the address is in.
    fn as_number(&self) -> Option<u32>;

    /// The visitor's place in a division, in hundredths of a percent: 0 to 9,999.
    fn place(&self, division: &str) -> Option<u16>;

    /// When the scan came.
    fn time(&self) -> UnixMillis;
}

/// Names as written in a rule; those after a comma are the same field's name in a list of actions.
const NAMES: &[(&str, Field)] = &[
    ("thng", Field::Text(Text::Thng)),
    ("thng.id", Field::Text(Text::Thng)),
    ("thng.name", Field::Text(Text::ThngName)),
    ("product", Field::Text(Text::Product)),
    ("product.id", Field::Text(Text::Product)),
    ("commissionState", Field::Text(Text::CommissionState)),
    ("assessment", Field::Text(Text::Assessment)),
    ("assessment.authenticationStatus", Field::Text(Text::Assessment)),
    ("assessment.counterfeitStatus", Field::Text(Text::Counterfeit)),
    ("assessment.grayMarketStatus", Field::Text(Text::GrayMarket)),
    ("project", Field::Project),
    ("type", Field::Text(Text::ActionType)),
    ("country", Field::Text(Text::Country)),
    ("context.countryCode", Field::Text(Text::Country)),
    ("region", Field::Text(Text::Region)),
    ("context.region", Field::Text(Text::Region)),
    ("city", Field::Text(Text::City)),
    ("context.city", Field::Text(Text::City)),
    ("userAgentName", Field::Text(Text::AgentName)),
    ("context.userAgentName", Field::Text(Text::AgentName)),
    ("operatingSystemName", Field::Text(Text::SystemName)),
    ("context.operatingSystemName", Field::Text(Text::SystemName)),
    ("device", Field::Text(Text::Device)),
    ("language", Field::Language),
    ("languages", Field::Languages),
    ("refererHost", Field::RefererHost),
    ("network", Field::Network),
    ("asNumber", Field::AsNumber),
    ("timestamp", Field::Timestamp),
    ("hour", Field::Hour(None)),
    ("weekday", Field::Weekday(None)),
    ("shortDomain", Field::Text(Text::ShortDomain)),
    ("shortId", Field::Text(Text::ShortId)),
];

/// Fields with a part of their own behind the first dot, and what the part is.
const FAMILIES: &[(&str, Family)] = &[
    ("languages.TAG", Family::LanguageQuality),
    ("query.NAME", Family::Query),
    ("percentage", Family::Percentage),
    ("percentage.NAME", Family::Percentage),
    ("hour.ZONE", Family::Hour),
    ("weekday.ZONE", Family::Weekday),
];

#[derive(Debug, Clone, Copy)]
enum Family {
    LanguageQuality,
    Query,
    Percentage,
    Hour,
    Weekday,
}

/// Longest name of a parameter of a query, in bytes.
const MAX_PARAMETER: usize = 128;
/// Longest name of a division, in bytes.
const MAX_DIVISION: usize = 64;
/// Longest tag of a language, in bytes: RFC 5646 asks of programs to take 35.
const MAX_TAG: usize = 35;

/// Names that will mean something; until then a rule that uses them would silently never match.
const RESERVED: &[&str] = &["status", "likelyAuthentic"];

impl Field {
    /// The field with a name.
    ///
    /// # Errors
    /// The reason, as the end of a sentence.
    pub fn parse(name: &str) -> Result<Self, String> {
        if let Some((_, field)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(field.clone());
        }
        let (head, part) = name.split_once('.').unwrap_or((name, ""));
        let is_whole = head.len() == name.len();
        let of_family = |known: &str| match known.split_once('.') {
            Some((known, _)) => known == head && !is_whole,
            None => known == head && is_whole,
        };
        if let Some((_, family)) = FAMILIES.iter().find(|(known, _)| of_family(known)) {
            return family.field(name, part, is_whole);
        }
        if RESERVED.contains(&head) {
            return Err(format!("the field {name} is reserved and cannot be asked for yet"));
        }
        let names = NAMES.iter().map(|(name, _)| *name).chain(FAMILIES.iter().map(|(name, _)| *name));
        let names: Vec<&str> = names.collect();
        Err(format!("there is no field {name}; rules may use {}", names.join(", ")))
    }

    /// Whether values are numbers.
    #[must_use]
    pub const fn is_number(&self) -> bool {
        match self {
            Self::Timestamp
            | Self::Hour(_)
            | Self::Weekday(_)
            | Self::LanguageQuality(_)
            | Self::Percentage(_)
            | Self::AsNumber => true,
            Self::Text(_)
            | Self::Project
            | Self::Language
            | Self::Languages
            | Self::RefererHost
            | Self::Query(_)
            | Self::Network => false,
        }
    }

    /// Whether an operator is valid for the field: order and equality for numbers, equality and prefix for texts.
    ///
    /// A division has an order alone: a single place holds nearly nobody. Networks, autonomous systems and kinds of devices
    /// have equality alone.
    #[must_use]
    pub const fn takes(&self, operator: Operator) -> bool {
        match operator {
            Operator::Equal => !matches!(self, Self::Percentage(_)),
            Operator::Prefix => {
                !self.is_number() && !matches!(self, Self::Network | Self::Text(Text::Device))
            }
            Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast => {
                self.is_number() && !matches!(self, Self::AsNumber)
            }
        }
    }

    /// A value in the form in which facts come.
    ///
    /// # Errors
    /// No fact can ever be compared with it: the reason, as the end of a sentence behind `the field …`.
    pub(super) fn read(&self, operator: Operator, value: &Value) -> Result<String, String> {
        let text = value.as_str();
        let within = |least: f64, most: f64| match value.number() {
            Some(number) if (least..=most).contains(&number) => Ok(text.to_owned()),
            _ => Err(format!("is compared with a number from {least} to {most}")),
        };
        Ok(match self {
            Self::Text(Text::Country) => text.to_ascii_uppercase(),
            Self::Text(Text::ShortDomain) | Self::Language | Self::Languages => text.to_ascii_lowercase(),
            Self::Text(Text::Device) => {
                let is_kind = Device::ALL.into_iter().any(|kind| kind.as_str() == text);
                let words = || Device::ALL.map(Device::as_str).join(", ");
                is_kind.then(|| text.to_owned()).ok_or_else(|| format!("is one of {}", words()))?
            }
            Self::RefererHost if operator == Operator::Equal => url::Host::parse(text)
                .map(|host| host.to_string().trim_end_matches('.').to_owned())
                .ok()
                .filter(|host| !host.is_empty())
                .ok_or_else(|| "is compared with a host, such as example.com".to_owned())?,
            Self::RefererHost => text.to_ascii_lowercase(),
            Self::Network => read_network(text)
                .ok_or_else(|| "is compared with an address or a network, such as 192.0.2.0/24".to_owned())?
                .to_string(),
            Self::AsNumber => text
                .strip_prefix("AS")
                .unwrap_or(text)
                .parse::<u32>()
                .map_err(|_| "is compared with the number of an autonomous system, such as 15169".to_owned())?
                .to_string(),
            Self::LanguageQuality(_) => within(0.0, 1.0)?,
            Self::Percentage(_) => within(0.0, 100.0)?,
            Self::Timestamp | Self::Hour(_) | Self::Weekday(_) if value.number().is_none() => {
                return Err("is compared with a number".to_owned());
            }
            Self::Text(_)
            | Self::Project
            | Self::Query(_)
            | Self::Timestamp
            | Self::Hour(_)
            | Self::Weekday(_) => text.to_owned(),
        })
    }
}

impl Family {
    fn field(self, name: &str, part: &str, is_whole: bool) -> Result<Field, String> {
        let is_word = |byte: u8, more: &[u8]| byte.is_ascii_alphanumeric() || more.contains(&byte);
        match self {
            Self::LanguageQuality => {
                let is_tag =
                    (1..=MAX_TAG).contains(&part.len()) && part.bytes().all(|byte| is_word(byte, b"-"));
                is_tag
                    .then(|| Field::LanguageQuality(part.to_ascii_lowercase().into()))
                    .ok_or_else(|| format!("the field {name} must name a language, such as languages.de"))
            }
            Self::Query if is_access_token(part) => {
                Err(format!("the field {name} cannot be asked for: keys are read by nobody else"))
            }
            Self::Query if (1..=MAX_PARAMETER).contains(&part.len()) => Ok(Field::Query(part.into())),
            Self::Query => Err(format!(
                "the field {name} must name a parameter of 1 to {MAX_PARAMETER} bytes, such as query.ref"
            )),
            Self::Percentage => {
                let is_name =
                    (1..=MAX_DIVISION).contains(&part.len()) && part.bytes().all(|byte| is_word(byte, b"_-"));
                (is_name || is_whole).then(|| Field::Percentage(part.into())).ok_or_else(|| {
                    format!("the field {name} must have 1 to {MAX_DIVISION} letters, digits, _ or - behind the dot")
                })
            }
            Self::Hour => zone::find(part).map(|zone| Field::Hour(Some(zone))),
            Self::Weekday => zone::find(part).map(|zone| Field::Weekday(Some(zone))),
        }
    }
}

/// The network that a text names, or an address as a network of its own; that of IPv4 also where it is written as IPv6.
pub(super) fn read_network(text: &str) -> Option<IpNet> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let network = address.or_else(|_| text.parse::<IpNet>()).ok()?.trunc();
    let IpNet::V6(v6) = network else { return Some(network) };
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
        (Some(v4), Some(bits)) => Ipv4Net::new(v4, bits).ok().map(IpNet::from),
        _ => Some(network),
    }
}
