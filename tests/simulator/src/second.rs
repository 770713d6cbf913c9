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

shared::words! {
    /// Which conditions a population lives under.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Mix {
        /// The best estimate of reality.
        Plain = "plain",
        /// Parameters at the unfavourable end of what the sources support.
        Shift = "shift",
        /// Engaged owners, households, events and service points.
        Crowd = "crowd",
        /// Browsers with reduced user agents: two of them for three quarters of the phones, and no model names.
        Reduced = "reduced",
        /// Tourists buy 6 % of the genuine goods and take them home.
        Tourists = "tourists",
        /// 4 % of the genuine goods are display pieces without a tag.
        Display = "display",
        /// Every diverted item was scanned inside of its market first.
        TriedInside = "tried inside",
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
