//! Commissioning: the states of a Thng, and the reasons against a step (`control/README.md`, "Commissioning").

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use shared::{
    commission::CommissionState,
    id::{PlaceId, ProductId},
    time::UnixMillis,
};

/// Most steps of a Thng that are remembered with it: items come back from a customer a few times at most.
pub const MAX_STEPS: usize = 64;

/// The requested step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The Thng becomes an instance of a product.
    Commission,
    /// The Thng is withdrawn.
    Decommission,
}

impl Step {
    /// Type of the action that records it.
    #[must_use]
    pub const fn action_type(self) -> &'static str {
        match self {
            Self::Commission => "commissions",
            Self::Decommission => "decommissions",
        }
    }

    /// The state that it leads to.
    #[must_use]
    pub const fn leads_to(self) -> CommissionState {
        match self {
            Self::Commission => CommissionState::Commissioned,
            Self::Decommission => CommissionState::Decommissioned,
        }
    }
}

/// Who names which factory; `None` names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Factories<'a> {
    /// `customFields.factory` of the Thng.
    pub thng: Option<&'a str>,
    /// `factoryMetadata.factory` of the request.
    pub request: Option<&'a str>,
    /// The place in `location.place`, with its `identifiers.factory`.
    pub place: Option<(PlaceId, Option<&'a str>)>,
}

/// The facts for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The Thng's state.
    pub state: CommissionState,
    /// Whether the Thng has an `encodings` action.
    pub is_encoded: bool,
    /// The factories that are named.
    pub factories: Factories<'a>,
}

/// Why a step cannot be taken; reads as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no `encodings` action.
    NotEncoded,
    /// It is commissioned.
    AlreadyCommissioned,
    /// It was never commissioned.
    NeverCommissioned,
    /// It is decommissioned.
    AlreadyDecommissioned,
    /// The Thng names no factory, or another one than the request.
    FactoryOfThng(Option<String>),
    /// The request names no factory.
    FactoryOfRequest,
    /// The request names no place.
    NoPlace,
    /// The place names no factory, or another one.
    FactoryOfPlace(PlaceId, Option<String>),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEncoded => {
                f.write_str("The Thng is not encoded: it has no action of the type encodings.")
            }
            Self::AlreadyCommissioned => f.write_str("The Thng is commissioned already."),
            Self::NeverCommissioned => f.write_str("The Thng was never commissioned."),
            Self::AlreadyDecommissioned => f.write_str("The Thng is decommissioned already."),
            Self::FactoryOfThng(None) => f.write_str("customFields.factory of the Thng is not set."),
            Self::FactoryOfThng(Some(other)) => {
                write!(f, "customFields.factory of the Thng is {other}, not that of factoryMetadata.factory.")
            }
            Self::FactoryOfRequest => {
                f.write_str("factoryMetadata.factory is not given, and the Thng is of a factory.")
            }
            Self::NoPlace => {
                f.write_str("location.place is not given, and a factory must be that of a place.")
            }
            Self::FactoryOfPlace(id, None) => {
                write!(f, "location.place: identifiers.factory of the place {id} is not set.")
            }
            Self::FactoryOfPlace(id, Some(other)) => {
                write!(
                    f,
                    "location.place: identifiers.factory of the place {id} is {other}, another factory."
                )
            }
        }
    }
}

/// The state after a step.
///
/// # Errors
/// Everything that stands against it.
pub fn take(step: Step, facts: &Facts<'_>) -> Result<CommissionState, Vec<Refusal>> {
    let mut refusals = Vec::new();
    match (step, facts.state) {
        (Step::Commission, CommissionState::NotCommissioned | CommissionState::Decommissioned)
        | (Step::Decommission, CommissionState::Commissioned) => {}
        (Step::Commission, CommissionState::Commissioned) => refusals.push(Refusal::AlreadyCommissioned),
        // Spec gap: the platform API does not show the effect of these two; both are refused.
        (Step::Decommission, CommissionState::NotCommissioned) => refusals.push(Refusal::NeverCommissioned),
        (Step::Decommission, CommissionState::Decommissioned) => {
            refusals.push(Refusal::AlreadyDecommissioned);
        }
    }
    if step == Step::Commission && !facts.is_encoded {
        refusals.push(Refusal::NotEncoded);
    }
    refusals.extend(check_factories(&facts.factories));
    if refusals.is_empty() { Ok(step.leads_to()) } else { Err(refusals) }
}

/// All three name one factory, or neither the Thng nor the request names any.
fn check_factories(factories: &Factories<'_>) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let expected = match (factories.thng, factories.request) {
        (None, None) => return refusals,
        (None, Some(request)) => {
            refusals.push(Refusal::FactoryOfThng(None));
            request
        }
        (Some(thng), None) => {
            refusals.push(Refusal::FactoryOfRequest);
            thng
        }
        (Some(thng), Some(request)) => {
            if thng != request {
                refusals.push(Refusal::FactoryOfThng(Some(thng.to_owned())));
            }
            request
        }
    };
    match factories.place {
        None => refusals.push(Refusal::NoPlace),
        Some((id, factory)) if factory != Some(expected) => {
            refusals.push(Refusal::FactoryOfPlace(id, factory.map(str::to_owned)));
        }
        Some(_) => {}
    }
    refusals
}

/// A step that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// When it happened.
    pub at: UnixMillis,
    /// The state that it led to.
    pub to: CommissionState,
}

/// The stored state of a Thng that was commissioned at least once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Commission {
    /// The state now.
    pub state: CommissionState,
    /// The product that it was commissioned as last; it stays on record when the Thng is withdrawn.
    pub product: ProductId,
    /// When the last step happened, as the factory wrote it, with its offset.
    pub occurred_at: String,
    /// The factory of the last commission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory: Option<String>,
    /// The purchase order of the last commission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_order: Option<String>,
    /// The last [`MAX_STEPS`] steps in the order in which they were accepted.
    pub steps: Vec<Taken>,
}

impl Commission {
    /// The state at a time: that of the step which happened last until then.
    ///
    /// Of steps that happened at one moment, the one that was accepted later counts.
    #[must_use]
    pub fn state_at(&self, at: UnixMillis) -> CommissionState {
        let until = self.steps.iter().filter(|taken| taken.at <= at);
        until.max_by_key(|taken| taken.at).map_or(CommissionState::NotCommissioned, |taken| taken.to)
    }

    /// When the Thng was commissioned that is so at a time, or will be first; `None` without such a step.
    #[must_use]
    pub fn commissioned_at(&self, at: UnixMillis) -> Option<UnixMillis> {
        let commissions = self.steps.iter().filter(|taken| taken.to == CommissionState::Commissioned);
        let before = commissions.clone().map(|taken| taken.at).filter(|taken| *taken <= at).max();
        before.or_else(|| commissions.map(|taken| taken.at).min())
    }

    /// Remembers a step.
    pub fn remember(&mut self, taken: Taken) {
        self.state = taken.to;
        self.steps.push(taken);
        let excess = self.steps.len().saturating_sub(MAX_STEPS);
        self.steps.drain(..excess);
    }
}

/// A timestamp as the client wrote it: ISO 8601 date and time with an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The text.
    pub text: String,
    /// Its value; three digits of the fraction of a second count.
    pub at: UnixMillis,
}

/// Why a text is no [`Moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an ISO 8601 date and time with an offset, such as 2026-11-22T08:15:00+01:00")]
pub struct InvalidMoment;

/// Longest text of a moment: a fraction of 20 digits.
const MAX_MOMENT: usize = 46;

impl FromStr for Moment {
    type Err = InvalidMoment;

    fn from_str(text: &str) -> Result<Self, InvalidMoment> {
        let millis = read_moment(text).filter(|_| text.len() <= MAX_MOMENT).ok_or(InvalidMoment)?;
        Ok(Self { text: text.to_owned(), at: UnixMillis(millis) })
    }
}

fn read_moment(text: &str) -> Option<i64> {
    let mut rest = text;
    let year = number(&mut rest, 4)?;
    skip(&mut rest, "-")?;
    let month = number(&mut rest, 2)?;
    skip(&mut rest, "-")?;
    let day = number(&mut rest, 2)?;
    skip(&mut rest, "Tt")?;
    let hour = number(&mut rest, 2)?;
    skip(&mut rest, ":")?;
    let minute = number(&mut rest, 2)?;
    let (mut second, has_seconds) = (0, rest.starts_with(':'));
    if has_seconds {
        skip(&mut rest, ":")?;
        second = number(&mut rest, 2)?;
    }
    let mut millis = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']).filter(|_| has_seconds) {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let shown = fraction.get(..digits.min(3)).filter(|shown| !shown.is_empty())?;
        millis = format!("{shown:0<3}").parse().ok()?;
        rest = &fraction[digits..];
    }
    let offset = match rest {
        "Z" | "z" => 0,
        _ => {
            let sign = if rest.starts_with('-') { -1 } else { 1 };
            skip(&mut rest, "+-")?;
            let hours = number(&mut rest, 2)?;
            // `+01`, `+0100` and `+01:00` are one offset.
            rest = rest.strip_prefix(':').filter(|minutes| !minutes.is_empty()).unwrap_or(rest);
            let minutes = if rest.is_empty() { 0 } else { number(&mut rest, 2)? };
            if !rest.is_empty() || hours > 23 || minutes > 59 {
                return None;
            }
            sign * (hours * 60 + minutes)
        }
    };
    // A leap second is the first one of the next minute.
    let fits = (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 60;
    let seconds =
        days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset * 60;
    fits.then_some(seconds * 1_000 + millis)
}

fn number(rest: &mut &str, digits: usize) -> Option<i64> {
    let (head, tail) = rest.split_at_checked(digits)?;
    *rest = tail;
    head.bytes().all(|byte| byte.is_ascii_digit()).then(|| head.parse().ok())?
}

fn skip(rest: &mut &str, one_of: &str) -> Option<()> {
    *rest = rest.strip_prefix(|c| one_of.contains(c))?;
    Some(())
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the Gregorian calendar since 1970, with years that begin in March.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_march = (month + 9) % 12;
    let of_year = (153 * of_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

#[cfg(test)]
mod tests;
