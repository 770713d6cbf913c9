//! The status of a Thng, sent with its redirections: its commissioning state and its last assessment.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::commission::CommissionState;

crate::words! {
    /// `authenticationStatus` of an assessment, in order of severity.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Authenticity {
        /// Everything speaks for it.
        Positive = "positive",
        /// Too little is known.
        Unknown = "unknown",
        /// Something speaks against it.
        Suspicious = "suspicious",
        /// It is not, or must not be here.
        Negative = "negative",
    } else ()
}

crate::words! {
    /// `counterfeitStatus` or `grayMarketStatus` of an assessment, in order of severity.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Risk {
        /// No sign of it.
        None = "none",
        /// Too little is known.
        Unknown = "unknown",
        /// There are signs.
        Suspected = "suspected",
        /// It is certain.
        Confirmed = "confirmed",
    } else ()
}

/// The three statuses of an assessment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Whether the item is genuine.
    pub authentication: Authenticity,
    /// Whether it is a copy.
    pub counterfeit: Risk,
    /// Whether it is outside of its markets.
    pub gray_market: Risk,
}

/// As a column holds it: three words.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { authentication, counterfeit, gray_market } = self;
        write!(f, "{} {} {}", authentication.as_str(), counterfeit.as_str(), gray_market.as_str())
    }
}

impl FromStr for Verdict {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let mut next = || words.next().ok_or(());
        let verdict = Self {
            authentication: next()?.parse()?,
            counterfeit: next()?.parse()?,
            gray_market: next()?.parse()?,
        };
        if words.next().is_none() { Ok(verdict) } else { Err(()) }
    }
}

/// The status of the Thng of a redirection, for rules that test it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The commissioning state; `None` for a Thng that was never commissioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commission: Option<CommissionState>,
    /// The last assessment; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

impl Standing {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_round_trip_and_other_texts_are_refused() {
        for authentication in Authenticity::ALL {
            for counterfeit in Risk::ALL {
                let verdict = Verdict { authentication, counterfeit, gray_market: Risk::None };
                assert_eq!(verdict.to_string().parse(), Ok(verdict));
                let json = serde_json::to_string(&verdict).unwrap();
                assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
            }
        }
        for text in [
            "",
            "positive",
            "positive none",
            "positive none none none",
            "none none none",
            "Positive none none",
        ] {
            assert_eq!(text.parse::<Verdict>(), Err(()), "{text}");
        }
        assert!(Authenticity::Negative > Authenticity::Suspicious && Risk::Confirmed > Risk::Suspected);
    }

    #[test]
    fn an_unknown_status_serialises_to_nothing() {
        assert_eq!(serde_json::to_string(&Standing::default()).unwrap(), "{}");
        assert_eq!(serde_json::from_str::<Standing>("{}").unwrap(), Standing::default());
        assert!(Standing::default().is_empty());
    }
}
