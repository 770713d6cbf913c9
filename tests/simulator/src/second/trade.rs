//! Diverted goods: genuine items that are sold outside of their market.

use countries::CountryCode;

use super::super::{Case, Kind, Rng, atlas::Country, people::Town};
use super::{
    Mix, habits,
    people::{HORIZON_DAYS, Person},
    phones::Phone,
    plan::{About, Plan},
    shares,
    world::{self, DAY},
};

/// Who brings goods out of their market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Importer,
    Parallel,
    TravelRetail,
    Marketplace,
}

impl Way {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Importer => "grey importer",
            Self::Parallel => "parallel trade",
            Self::TravelRetail => "travel retail",
            Self::Marketplace => "marketplace seller",
        }
    }
}

/// Where duty-free goods and those of buyers by order come from.
const TRAVEL_SHOPS: &[&str] = &["KR", "AE", "SG", "FR", "IT", "JP", "GB"];

/// How often a market and a buyer outside of it are drawn before the draw is given up.
const DRAWS: usize = 20;

/// The scans of a diverted item; the last one is by somebody who is outside of its market.
pub(super) fn diverted(rng: &mut Rng, mix: Mix) -> Option<Case> {
    let way = world::weighted(
        rng,
        &[
            (Way::Importer, shares::IMPORTER.of(mix)),
            (Way::Parallel, shares::PARALLEL.of(mix)),
            (Way::TravelRetail, shares::TRAVEL_RETAIL.of(mix)),
            (Way::Marketplace, shares::MARKETPLACE.of(mix)),
        ],
    );
    let (from, market, to) = route(rng, mix, way)?;
    let mut plan = Plan::new(rng, mix, from);
    let shipped = world::log_uniform(rng, shares::STOCK_DAYS);

    if mix == Mix::TriedInside || rng.chance(shares::TRIED_INSIDE.of(mix)) {
        tried_inside(rng, mix, &mut plan, from, shipped);
    }
    let arrived = shipped + world::log_uniform(rng, habits::DIVERSION_DAYS);
    if way == Way::Importer && rng.chance(shares::IMPORTER_CHECKS) {
        let importer = Person::new(rng, mix, to);
        let importer = if rng.chance(habits::IMPORTER_BY_PHONE) {
            importer
        } else {
            importer.at_counter(Phone::desktop())
        };
        let importer = plan.person(importer);
        plan.visit_in(rng, arrived, importer, 0, to);
    }
    let sold = arrived + world::exponential(rng, habits::IMPORTER_STOCK_DAYS);
    let owner_town = if rng.chance(habits::BUYER_IN_TOWN) { to } else { world::other_town(rng, to) };
    let is_family = rng.chance(habits::DIVERTED_TO_FAMILY);
    let members = if is_family { world::count(rng, habits::DIVERTED_FAMILY) } else { 1 };
    let mut first: Option<Person> = None;
    for _ in 0..members {
        let mut owner = Person::new(rng, mix, owner_town);
        if let Some(first) = &first {
            owner = owner.living_with(first);
        }
        first.get_or_insert_with(|| owner.clone());
        let owner = plan.person(owner);
        let visits = world::at_least_one(rng, shares::OWNER_VISITS.of(mix));
        plan.own(rng, owner, 0, (sold, HORIZON_DAYS.max(sold + 30.0)), visits);
    }
    let about = About { kind: Kind::Diverted, who: way.as_str(), market: market.clone(), is_tagged: false };
    let left = shipped as i64 * DAY;
    plan.finish(rng, mix, about, |one| one.at > left && !world::is_inside(&market, one.stay.town.country))
}

/// Somebody inside of the market scans before the goods leave it: a buyer for export, a first customer, a
/// shop's guest.
fn tried_inside(rng: &mut Rng, mix: Mix, plan: &mut Plan, from: Town, shipped: f64) {
    let town = if rng.chance(habits::TRIED_IN_TOWN) { from } else { world::other_town(rng, from) };
    for _ in 0..if rng.chance(habits::TRIED_BY_ONE) { 1 } else { 2 } {
        let somebody = Person::new(rng, mix, town);
        let somebody = plan.person(somebody);
        // A day or more after the commissioning, and before the shipment.
        let day = 1.0 + (shipped - 2.0) * world::between(rng, (habits::TRIED_FROM, 1.0));
        plan.visit_in(rng, day, somebody, 0, town);
    }
}

/// Where an item should have been sold, its market, and where it is sold.
fn route(rng: &mut Rng, mix: Mix, way: Way) -> Option<(Town, Vec<CountryCode>, Town)> {
    for _ in 0..DRAWS {
        let from: &'static Country = match way {
            Way::TravelRetail => world::by_code(rng.pick::<&str>(TRAVEL_SHOPS)),
            Way::Importer | Way::Parallel | Way::Marketplace => world::customer_country(rng, |_| true),
        };
        let market = world::market(rng, mix, from);
        let outside = |country: &Country| !world::is_inside(&market, country);
        let to = match way {
            Way::Importer | Way::Marketplace => world::customer_country(rng, outside),
            Way::Parallel => world::customer_country(rng, |one| one.area == from.area && outside(one)),
            Way::TravelRetail if rng.chance(habits::TO_CHINA) => world::by_code("CN"),
            Way::TravelRetail => world::customer_country(rng, outside),
        };
        if outside(to) {
            let from = world::town_in(rng, from);
            let to = world::town_in(rng, to);
            return Some((from, market, to));
        }
    }
    None
}
