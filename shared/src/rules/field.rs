//! The fields that rules can test, their names, and where their values come from.

use crate::{filter::Operator, id::ProjectId, time::UnixMillis};

/// A field that a condition of a rule tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// One text, compared exactly.
    Text(Text),
    /// The projects that the redirection's scopes name.
    Project,
    /// The first language of `Accept-Language`: the whole tag or its first part, without case.
    Language,
    /// Milliseconds since 1970.
    Timestamp,
    /// Hour of the day in UTC, 0 to 23.
    Hour,
    /// Day of the week in UTC, 1 (Monday) to 7 (Sunday).
    Weekday,
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
    /// City in English by the client's address.
    City,
    /// Name of the browser or program.
    AgentName,
    /// Name of the operating system.
    SystemName,
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
    ("city", Field::Text(Text::City)),
    ("context.city", Field::Text(Text::City)),
    ("userAgentName", Field::Text(Text::AgentName)),
    ("context.userAgentName", Field::Text(Text::AgentName)),
    ("operatingSystemName", Field::Text(Text::SystemName)),
    ("context.operatingSystemName", Field::Text(Text::SystemName)),
    ("language", Field::Language),
    ("timestamp", Field::Timestamp),
    ("hour", Field::Hour),
    ("weekday", Field::Weekday),
    ("shortDomain", Field::Text(Text::ShortDomain)),
    ("shortId", Field::Text(Text::ShortId)),
];

/// Names that will mean something; until then a rule that uses them would silently never match.
const RESERVED: &[&str] = &["status", "likelyAuthentic"];

impl Field {
    /// The field with a name.
    ///
    /// # Errors
    /// The reason, as the end of a sentence.
    pub fn parse(name: &str) -> Result<Self, String> {
        if let Some((_, field)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(*field);
        }
        let head = name.split('.').next().unwrap_or_default();
        if RESERVED.contains(&head) {
            return Err(format!("the field {name} is reserved and cannot be asked for yet"));
        }
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        Err(format!("there is no field {name}; rules may use {}", names.join(", ")))
    }

    /// Whether values are numbers.
    #[must_use]
    pub const fn is_number(self) -> bool {
        match self {
            Self::Timestamp | Self::Hour | Self::Weekday => true,
            Self::Text(_) | Self::Project | Self::Language => false,
        }
    }

    /// Whether an operator is valid for the field: order and equality for numbers, equality and prefix for texts.
    #[must_use]
    pub const fn takes(self, operator: Operator) -> bool {
        match operator {
            Operator::Equal => true,
            Operator::Prefix => !self.is_number(),
            Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast => self.is_number(),
        }
    }

    /// A value in the form in which facts come.
    pub(super) fn fold(self, value: &str) -> String {
        match self {
            Self::Text(Text::Country) => value.to_ascii_uppercase(),
            Self::Text(Text::ShortDomain) | Self::Language => value.to_ascii_lowercase(),
            Self::Text(_) | Self::Project | Self::Timestamp | Self::Hour | Self::Weekday => value.to_owned(),
        }
    }
}
