//! The places that an address tells: right, wrong, or no more than a country.

use verdicts::domain::{assessment::spot::Spot, location::Coordinates};

use super::super::{Mix, facts, world};
use crate::{Rng, people::Town};

/// A place that a database gives as a city; its points are those of districts.
pub(crate) fn city(rng: &mut Rng, town: Town) -> Spot {
    let mut off = || (rng.unit() - 0.5) * 0.24;
    let at = Coordinates::new(town.city.latitude + off(), town.city.longitude + off());
    Spot::of_address(true, at, Some(town.country.code), Some(town.city.region))
}

pub(super) fn fixed(rng: &mut Rng, mix: Mix, town: Town) -> Spot {
    if rng.chance(facts::NO_PLACE.of(mix)) {
        return Spot::NOWHERE;
    }
    if rng.chance(facts::FIXED_WRONG_COUNTRY.of(mix)) {
        let wrong = world::destination(rng, town.country);
        return city(rng, wrong);
    }
    let drawn = rng.unit();
    let right = facts::FIXED_RIGHT_CITY.of(mix);
    if drawn < right {
        city(rng, town)
    } else if drawn < right + facts::FIXED_COUNTRY_ONLY.of(mix) {
        Spot::of_address(false, None, Some(town.country.code), None)
    } else {
        let other = world::other_town(rng, town);
        city(rng, other)
    }
}

pub(super) fn mobile(rng: &mut Rng, mix: Mix, town: Town) -> Spot {
    if rng.chance(facts::NO_PLACE.of(mix)) {
        return Spot::NOWHERE;
    }
    if rng.chance(facts::MOBILE_WRONG_COUNTRY.of(mix)) {
        let wrong = world::destination(rng, town.country);
        return city(rng, wrong);
    }
    let drawn = rng.unit();
    let right = facts::MOBILE_RIGHT_CITY.of(mix);
    if drawn < right {
        city(rng, town)
    } else if drawn < right + facts::MOBILE_COUNTRY_ONLY.of(mix) {
        Spot::of_address(false, None, Some(town.country.code), None)
    } else if rng.chance(facts::AT_GATEWAY) {
        city(rng, Town { country: town.country, city: &town.country.cities[0] })
    } else {
        let other = world::other_town(rng, town);
        city(rng, other)
    }
}
