//! The two populations under each of their mixes.

use std::fmt;

use super::{Case, Figures, Rng, items, second};

/// A population under some conditions.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "there are fourteen of them")]
pub enum Population {
    /// The one that was there while the rules were tuned, with the name of its mix.
    First(&'static str, Figures),
    /// The one whose author had not read the rules.
    Second(second::Mix),
}

/// Nobody buys on a journey, and nothing is tried inside of its market before it is diverted: both have mixes of their
/// own.
const fn at_home(figures: Figures) -> Figures {
    Figures { tourist: 0.0, tried_inside: 0.0, ..figures }
}

impl Population {
    /// The mixes of the first population, by the names that the second one has for the same conditions.
    pub const FIRST: [Self; 7] = [
        Self::First("plain", at_home(Figures::PLAIN)),
        Self::First("shift", at_home(Figures::SHIFTED)),
        Self::First("crowd", at_home(Figures { engaged: 0.24, household: 0.4, ..Figures::PLAIN })),
        Self::First(
            "reduced",
            at_home(Figures { iphone_safari: 0.97, android_reduced: 0.97, ..Figures::PLAIN }),
        ),
        Self::First("tourists", Figures { tourist: 0.06, tried_inside: 0.0, ..Figures::PLAIN }),
        Self::First("display", at_home(Figures::CROWDED)),
        Self::First("tried inside", Figures { tourist: 0.0, tried_inside: 1.0, ..Figures::PLAIN }),
    ];

    /// Both populations, each under all of its mixes.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Self::FIRST.into_iter().chain(second::Mix::ALL.map(Self::Second)).collect()
    }

    /// Name of the mix.
    #[must_use]
    pub const fn mix(self) -> &'static str {
        match self {
            Self::First(mix, _) => mix,
            Self::Second(mix) => mix.as_str(),
        }
    }

    /// The next case.
    pub(super) fn case(self, rng: &mut Rng) -> Case {
        match self {
            Self::First(_, figures) => items::case(rng, &figures),
            Self::Second(mix) => second::case(rng, mix),
        }
    }
}

impl fmt::Display for Population {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self {
            Self::First(..) => "first",
            Self::Second(_) => "second",
        };
        write!(f, "{number} population, {}", self.mix())
    }
}
