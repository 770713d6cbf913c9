//! A second simulated population, written from public facts by an author who had not read the rules of
//! assessment.
//!
//! The first population was there when the rules were tuned, so it cannot show how well they work. This one
//! shares only the random numbers, the atlas of cities and the mechanics of networks and languages (`lines`) with it. Its parameters are in `facts` (people,
//! phones, networks) and `shares` (goods and trade), each with its source, or with the reason why it had to
//! be assumed.

mod copies;
mod facts;
mod goods;
mod habits;
mod people;
mod phones;
mod plan;
mod shares;
#[cfg(test)]
mod tests;
mod trade;
mod world;

use verdicts::domain::assessment::agent::AgentHash;

pub(super) use self::phones::{Phone, Program};
use super::{Case, Kind, Rng};

/// Which conditions a population lives under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// The best estimate of reality.
    Plain,
    /// Parameters at the unfavourable end of what the sources support.
    Shift,
    /// Engaged owners, households, events and service points.
    Crowd,
    /// Browsers with reduced user agents: two of them for three quarters of the phones, and no model names.
    Reduced,
    /// Tourists buy 6 % of the genuine goods and take them home.
    Tourists,
    /// 4 % of the genuine goods are display pieces without a tag.
    Display,
    /// Every diverted item was scanned inside of its market first.
    TriedInside,
}

impl Mix {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Plain,
        Self::Shift,
        Self::Crowd,
        Self::Reduced,
        Self::Tourists,
        Self::Display,
        Self::TriedInside,
    ];

    /// Its name in a report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Shift => "shift",
            Self::Crowd => "crowd",
            Self::Reduced => "reduced",
            Self::Tourists => "tourists",
            Self::Display => "display",
            Self::TriedInside => "tried inside",
        }
    }
}

/// The next case of a mix: 60 % genuine, 20 % diverted, 20 % copied, so that the rates of each can be
/// measured.
#[must_use]
pub fn case(rng: &mut Rng, mix: Mix) -> Case {
    let drawn = rng.unit();
    let kind = if drawn < shares::GENUINE {
        Kind::Genuine
    } else if drawn < shares::GENUINE + shares::DIVERTED {
        Kind::Diverted
    } else {
        Kind::Copied
    };
    loop {
        let made = match kind {
            Kind::Genuine => goods::genuine(rng, mix),
            Kind::Diverted => trade::diverted(rng, mix),
            Kind::Copied => copies::copied(rng, mix),
        };
        // Nobody scanned what the case is about: it never comes before the rules.
        if let Some(made) = made {
            return made;
        }
    }
}

/// The devices of the population with a user agent of each.
pub(super) fn user_agents() -> Vec<(AgentHash, String)> {
    Phone::all().filter_map(|phone| Some((phone.agent(0)?, phone.user_agent(0)))).collect()
}
