//! Copied codes: many items with the code of one.

use super::super::{Case, Kind, Rng, people::Town};
use super::{
    Mix, habits,
    people::{HORIZON_DAYS, Person},
    plan::{About, Plan},
    shares, world,
};

/// How copies are sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trade {
    Stalls,
    OneCountry,
    ManyCountries,
    BesideGenuine,
}

impl Trade {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Stalls => "stalls of one city",
            Self::OneCountry => "online in one country",
            Self::ManyCountries => "online in many countries",
            Self::BesideGenuine => "beside the genuine item",
        }
    }
}

/// The scans of items with a copied code, `None` when nobody scanned any copy.
pub(super) fn copied(rng: &mut Rng, mix: Mix) -> Option<Case> {
    let trade = world::weighted(
        rng,
        &[
            (Trade::Stalls, shares::STALLS.of(mix)),
            (Trade::OneCountry, shares::ONE_COUNTRY.of(mix)),
            (Trade::ManyCountries, shares::MANY_COUNTRIES.of(mix)),
            (Trade::BesideGenuine, shares::BESIDE_GENUINE.of(mix)),
        ],
    );
    let country = world::customer_country(rng, |_| true);
    let home = world::town_in(rng, country);
    let market = world::market(rng, mix, country);
    let mut plan = Plan::new(rng, mix, home);
    let bought = world::log_uniform(rng, shares::STOCK_DAYS);

    if rng.chance(shares::FORGER_SCANS) {
        let forger = world::by_code(world::weighted(rng, shares::FORGERS));
        let forger_town = world::town_in(rng, forger);
        let forger = Person::new(rng, mix, forger_town);
        let forger = plan.person(forger);
        let day = bought + habits::FORGER_DAYS * rng.unit();
        plan.visit_in(rng, day, forger, 0, forger_town);
    }
    if trade == Trade::BesideGenuine || rng.chance(shares::ORIGINAL_SCANNED) {
        let owner = Person::new(rng, mix, home);
        let owner = plan.person(owner);
        let visits = world::at_least_one(rng, shares::OWNER_VISITS.of(mix));
        plan.own(rng, owner, 0, (bought, HORIZON_DAYS), visits);
    }
    let printed = if trade == Trade::BesideGenuine { shares::FEW_COPIES } else { shares::COPIES };
    let copies = world::log_uniform(rng, printed) as usize;
    let start = bought + world::log_uniform(rng, habits::FORGING_DAYS);
    let days = world::log_uniform(rng, shares::SALE_DAYS);
    let place = stall(rng, trade, home);
    for copy in 1..=copies {
        if rng.chance(shares::COPY_SCANNED.of(mix)) {
            let day = start + days * rng.unit();
            sold(rng, mix, &mut plan, trade, place, copy, day);
        }
    }
    if trade == Trade::Stalls && rng.chance(shares::SELLER_SHOWS) {
        let seller = Person::new(rng, mix, place);
        let seller = plan.person(seller);
        for _ in 0..world::count(rng, habits::SHOWN_TIMES) {
            let (day, copy) = (start + days * rng.unit(), rng.between(1, copies));
            plan.visit_in(rng, day, seller, copy, place);
        }
    }
    let first_copy = plan.first_copy()?;
    let about = About { kind: Kind::Copied, who: trade.as_str(), market, is_tagged: false };
    plan.finish(rng, mix, about, |one| one.at >= first_copy)
}

/// Where the copies are on offer: where the original was sold, or anywhere.
fn stall(rng: &mut Rng, trade: Trade, home: Town) -> Town {
    let is_elsewhere = trade != Trade::BesideGenuine && rng.chance(shares::SOLD_ELSEWHERE);
    let country = if is_elsewhere { world::customer_country(rng, |_| true) } else { home.country };
    world::town_in(rng, country)
}

/// One copy is sold to somebody who scans it.
fn sold(rng: &mut Rng, mix: Mix, plan: &mut Plan, trade: Trade, place: Town, copy: usize, day: f64) {
    let home = match trade {
        Trade::Stalls if rng.chance(shares::TOURISTS_AT_STALLS) => {
            let is_foreign = rng.chance(habits::STALL_FOREIGNERS);
            if is_foreign { world::destination(rng, place.country) } else { world::other_town(rng, place) }
        }
        Trade::Stalls => place,
        Trade::OneCountry => world::town_in(rng, place.country),
        Trade::ManyCountries => {
            let country = world::customer_country(rng, |_| true);
            world::town_in(rng, country)
        }
        Trade::BesideGenuine if rng.chance(habits::BESIDE_IN_COUNTRY) => world::town_in(rng, place.country),
        Trade::BesideGenuine => {
            let country = world::customer_country(rng, |_| true);
            world::town_in(rng, country)
        }
    };
    let buyer = Person::new(rng, mix, home);
    let buyer = plan.person(buyer);
    if trade == Trade::Stalls && rng.chance(habits::SCANNED_AT_STALL) {
        plan.visit_in(rng, day, buyer, copy, place);
    } else {
        // A parcel or the way home takes some days.
        let unpacked = day + world::exponential(rng, habits::PARCEL_DAYS);
        plan.visit(rng, unpacked, buyer, copy);
    }
    if rng.chance(shares::COPY_SCANNED_AGAIN) {
        let later = day + 7.0 + world::exponential(rng, habits::COPY_AGAIN_DAYS);
        plan.visit(rng, later, buyer, copy);
    }
}
