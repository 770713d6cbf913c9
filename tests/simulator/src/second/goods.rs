//! Lives of genuine items.

use super::super::{Case, Kind, Rng, people::Town};
use super::{
    Mix, habits,
    people::{HORIZON_DAYS, Person},
    phones::Phone,
    plan::{About, Plan},
    shares,
    world::{self, DAY},
};

/// What becomes of a genuine item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Owner,
    Family,
    Engaged,
    VpnOwner,
    Commuter,
    Traveller,
    Expat,
    GiftNear,
    GiftAbroad,
    ResoldNear,
    ResoldAbroad,
    Shelf,
    Returned,
    Display,
    Untagged,
    Refurbished,
    Serviced,
    Event,
    Tourist,
}

impl Life {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Family => "family",
            Self::Engaged => "engaged owner",
            Self::VpnOwner => "owner with a VPN",
            Self::Commuter => "commuter across a border",
            Self::Traveller => "traveller",
            Self::Expat => "owner who moved abroad",
            Self::GiftNear => "gift",
            Self::GiftAbroad => "gift sent abroad",
            Self::ResoldNear => "resold",
            Self::ResoldAbroad => "resold abroad",
            Self::Shelf => "scanned on the shelf",
            Self::Returned => "returned and sold again",
            Self::Display => "display piece",
            Self::Untagged => "untagged display piece",
            Self::Refurbished => "refurbished",
            Self::Serviced => "serviced",
            Self::Event => "event",
            Self::Tourist => "tourist",
        }
    }

    fn draw(rng: &mut Rng, mix: Mix) -> Self {
        let fixed = match mix {
            Mix::Tourists => Some((Self::Tourist, shares::TOURIST_SHARE)),
            Mix::Display => Some((Self::Untagged, shares::UNTAGGED_SHARE)),
            Mix::Plain | Mix::Shift | Mix::Crowd | Mix::Reduced | Mix::TriedInside => None,
        };
        if let Some((life, share)) = fixed
            && rng.chance(share)
        {
            return life;
        }
        let mut weights: Vec<(Self, f64)> = [
            (Self::Owner, shares::OWNER),
            (Self::Family, shares::FAMILY),
            (Self::Engaged, shares::ENGAGED),
            (Self::VpnOwner, shares::VPN_OWNER),
            (Self::Commuter, shares::COMMUTER),
            (Self::Traveller, shares::TRAVELLER),
            (Self::Expat, shares::EXPAT),
            (Self::GiftNear, shares::GIFT_NEAR),
            (Self::GiftAbroad, shares::GIFT_ABROAD),
            (Self::ResoldNear, shares::RESOLD_NEAR),
            (Self::ResoldAbroad, shares::RESOLD_ABROAD),
            (Self::Shelf, shares::SHELF),
            (Self::Returned, shares::RETURNED),
            (Self::Display, shares::DISPLAY),
            (Self::Untagged, shares::UNTAGGED),
            (Self::Refurbished, shares::REFURBISHED),
            (Self::Serviced, shares::SERVICED),
            (Self::Event, shares::EVENT),
            (Self::Tourist, shares::TOURIST),
        ]
        .map(|(life, fact)| (life, fact.of(mix)))
        .to_vec();
        weights.retain(|(life, _)| fixed.is_none_or(|(one, _)| one != *life));
        world::weighted(rng, &weights)
    }
}

/// The scans of a genuine item.
pub(super) fn genuine(rng: &mut Rng, mix: Mix) -> Option<Case> {
    let life = Life::draw(rng, mix);
    let (home, across) = if life == Life::Commuter {
        world::across_a_border(rng)
    } else {
        let country = world::customer_country(rng, |_| true);
        let home = world::town_in(rng, country);
        (home, home)
    };
    let market = world::market(rng, mix, home.country);
    let plan = Plan::new(rng, mix, home);
    let bought = world::log_uniform(rng, shares::STOCK_DAYS);
    let mut story = Story { rng, mix, plan, home, bought };
    story.live(life, across);
    let about = About { kind: Kind::Genuine, who: life.as_str(), market, is_tagged: life == Life::Display };
    let Story { plan, rng, .. } = story;
    // The worker's check in the factory is no scan that anybody judges.
    plan.finish(rng, mix, about, |one| one.at >= DAY)
}

struct Story<'a> {
    rng: &'a mut Rng,
    mix: Mix,
    plan: Plan,
    home: Town,
    /// The day it is bought.
    bought: f64,
}

impl Story<'_> {
    fn live(&mut self, life: Life, across: Town) {
        let (rng, mix, home, bought) = (&mut *self.rng, self.mix, self.home, self.bought);
        match life {
            Life::Owner => {
                let owner = Person::new(rng, mix, home);
                self.owned(owner, bought, HORIZON_DAYS);
            }
            Life::VpnOwner => {
                let owner = Person::new(rng, mix, home).with_vpn(rng, mix);
                self.owned(owner, bought, HORIZON_DAYS);
            }
            Life::Commuter => {
                let owner = Person::new(rng, mix, home).working_in(across);
                self.owned(owner, bought, HORIZON_DAYS);
            }
            Life::Traveller => self.travels(),
            Life::Expat => {
                let day = bought + world::between(rng, habits::MOVE_AFTER_DAYS);
                let new_home = world::destination(rng, home.country);
                let owner = Person::new(rng, mix, home).moving(day as i64 * DAY, new_home);
                let owner = self.plan.person(owner);
                let rng = &mut *self.rng;
                let before = world::at_least_one(rng, shares::OWNER_VISITS.of(mix));
                self.plan.own(rng, owner, 0, (bought, day), before);
                let after = world::at_least_one(rng, shares::OWNER_VISITS.of(mix));
                self.plan.own(rng, owner, 0, (day, HORIZON_DAYS), after);
            }
            Life::Engaged => {
                let owner = Person::new(rng, mix, home);
                let owner = self.plan.person(owner);
                let rng = &mut *self.rng;
                let mean = shares::ENGAGED_VISITS.of(mix);
                let visits = 3 + world::exponential(rng, mean) as usize;
                self.plan.own(rng, owner, 0, (bought, HORIZON_DAYS), visits);
            }
            Life::Family => {
                let mut first: Option<Person> = None;
                for _ in 0..world::count(rng, shares::FAMILY_MEMBERS) {
                    let mut member = Person::new(self.rng, mix, home);
                    if let Some(first) = &first {
                        member = member.living_with(first);
                    }
                    first.get_or_insert_with(|| member.clone());
                    self.owned(member, bought, bought + 600.0);
                }
            }
            Life::GiftNear => {
                let is_same_town = rng.chance(habits::GIFT_IN_TOWN);
                let to = if is_same_town { home } else { world::other_town(rng, home) };
                self.given(to);
            }
            Life::GiftAbroad => {
                let to = world::destination(rng, home.country);
                self.given(to);
            }
            Life::ResoldNear => {
                let is_same_town = rng.chance(habits::RESALE_IN_TOWN);
                let to = if is_same_town { home } else { world::other_town(rng, home) };
                self.resold(to);
            }
            Life::ResoldAbroad => {
                let to = world::destination(rng, home.country);
                self.resold(to);
            }
            Life::Returned => {
                let first = Person::new(rng, mix, home);
                let back = bought + world::between(rng, habits::RETURN_DAYS);
                self.owned(first, bought, back);
                let again = back + world::log_uniform(self.rng, habits::SOLD_AGAIN_DAYS);
                let is_same_town = self.rng.chance(habits::SOLD_AGAIN_IN_TOWN);
                let town = if is_same_town { home } else { world::other_town(self.rng, home) };
                let second = Person::new(self.rng, mix, town);
                self.owned(second, again, HORIZON_DAYS);
            }
            Life::Shelf => {
                let shelf_days = 1.0 + world::exponential(rng, habits::SHELF_DAYS);
                let visitors = 1 + world::exponential(rng, habits::SHELF_VISITORS) as usize;
                self.shown(visitors, (bought, shelf_days), home);
                let owner = Person::new(self.rng, mix, home);
                self.owned(owner, bought + shelf_days, HORIZON_DAYS);
            }
            Life::Display | Life::Untagged => self.displayed(),
            Life::Event => {
                let visitors = world::log_uniform(rng, shares::EVENT_VISITORS) as usize;
                // Within one evening, or two.
                let days = if rng.chance(habits::ONE_EVENING) { 0.0 } else { habits::EVENT_DAYS };
                self.shown(visitors, (bought, days), home);
            }
            Life::Refurbished => self.repaired(true),
            Life::Serviced => self.repaired(false),
            Life::Tourist => self.taken_home(),
        }
    }

    fn owned(&mut self, owner: Person, from: f64, to: f64) {
        let owner = self.plan.person(owner);
        let visits = world::at_least_one(self.rng, shares::OWNER_VISITS.of(self.mix));
        self.plan.own(self.rng, owner, 0, (from, to.max(from + 1.0)), visits);
    }

    /// The owner scans at home, and once on a journey, as travellers do who take a thing along.
    fn travels(&mut self) {
        let owner = Person::new(self.rng, self.mix, self.home).travelling(self.rng, self.mix);
        let abroad = owner.first_trip_abroad(self.bought as i64 * DAY);
        self.owned(owner.clone(), self.bought, HORIZON_DAYS);
        if let Some((from, town)) = abroad {
            let traveller = self.plan.person(owner);
            let day = from as f64 / DAY as f64 + self.rng.unit();
            self.plan.visit_in(self.rng, day, traveller, 0, town);
        }
    }

    fn given(&mut self, to: Town) {
        let day = self.bought + world::log_uniform(self.rng, habits::GIFT_DAYS);
        if self.rng.chance(habits::GIVER_SCANS) {
            let giver = Person::new(self.rng, self.mix, self.home);
            let giver = self.plan.person(giver);
            self.plan.own(self.rng, giver, 0, (self.bought, day), 1);
        }
        let owner = Person::new(self.rng, self.mix, to);
        self.owned(owner, day, HORIZON_DAYS);
    }

    fn resold(&mut self, to: Town) {
        let day = self.bought + world::log_uniform(self.rng, habits::RESALE_DAYS);
        let first = Person::new(self.rng, self.mix, self.home);
        self.owned(first, self.bought, day);
        if self.rng.chance(shares::SCANNED_FROM_LISTING.of(self.mix)) {
            for _ in 0..world::count(self.rng, habits::STRANGERS) {
                let near =
                    if self.rng.chance(habits::STRANGERS_NEAR) { self.home.country } else { to.country };
                let town = world::town_in(self.rng, near);
                let stranger = Person::new(self.rng, self.mix, town);
                let stranger = self.plan.person(stranger);
                let looked = day - habits::LISTING_DAYS * self.rng.unit();
                self.plan.visit(self.rng, looked, stranger, 0);
            }
        }
        let second = Person::new(self.rng, self.mix, to);
        let arrived = day + habits::PARCEL_DAYS * (0.5 + self.rng.unit());
        self.owned(second, arrived, HORIZON_DAYS);
    }

    /// Visitors of a shop or an event scan, each once.
    fn shown(&mut self, visitors: usize, (from, days): (f64, f64), town: Town) {
        for _ in 0..visitors {
            let is_foreign = self.rng.chance(shares::FOREIGN_VISITORS.of(self.mix));
            let home = if is_foreign {
                world::destination(self.rng, town.country)
            } else if self.rng.chance(habits::VISITORS_OF_TOWN) {
                town
            } else {
                world::other_town(self.rng, town)
            };
            let visitor = Person::new(self.rng, self.mix, home);
            let visitor = self.plan.person(visitor);
            let day = from + days * self.rng.unit();
            self.plan.visit_in(self.rng, day, visitor, 0, town);
        }
    }

    /// A display piece: many visitors for months, staff who show it, and sometimes a second shop.
    fn displayed(&mut self) {
        let visitors = world::log_uniform(self.rng, shares::DISPLAY_VISITORS) as usize;
        let days = world::log_uniform(self.rng, habits::DISPLAY_DAYS);
        let staff = Person::new(self.rng, self.mix, self.home).at_counter(Phone::desktop());
        let staff = self.plan.person(staff);
        for _ in 0..world::count(self.rng, habits::STAFF_SCANS) {
            let day = self.bought + days * self.rng.unit();
            self.plan.visit_in(self.rng, day, staff, 0, self.home);
        }
        if self.rng.chance(habits::SECOND_SHOP) {
            let second_shop = world::other_town(self.rng, self.home);
            self.shown(visitors / 2, (self.bought, days / 2.0), self.home);
            self.shown(visitors - visitors / 2, (self.bought + days / 2.0, days / 2.0), second_shop);
        } else {
            self.shown(visitors, (self.bought, days), self.home);
        }
    }

    /// A service centre scans it, and it goes back to its owner, or to a second one.
    fn repaired(&mut self, is_sold_on: bool) {
        let sent = self.bought + world::log_uniform(self.rng, habits::REPAIR_AFTER_DAYS);
        let first = Person::new(self.rng, self.mix, self.home);
        let kept = first.clone();
        self.owned(first, self.bought, sent);
        let is_abroad = self.rng.chance(shares::SERVICE_ABROAD.of(self.mix));
        let centre = if is_abroad {
            world::destination(self.rng, self.home.country)
        } else {
            world::town_in(self.rng, self.home.country)
        };
        let is_by_phone = self.rng.chance(habits::CENTRE_BY_PHONE);
        let mut technician = Person::new(self.rng, self.mix, centre);
        if !is_by_phone {
            technician = technician.at_counter(Phone::desktop());
        }
        let technician = self.plan.person(technician);
        let arrived = sent + world::between(self.rng, habits::TO_CENTRE_DAYS);
        for step in 0..world::count(self.rng, habits::CENTRE_SCANS) {
            self.plan.visit_in(self.rng, arrived + 2.0 * step as f64, technician, 0, centre);
        }
        let back = arrived + world::between(self.rng, habits::REPAIR_DAYS);
        if is_sold_on {
            let town = world::town_in(self.rng, self.home.country);
            let second = Person::new(self.rng, self.mix, town);
            let sold = back + world::log_uniform(self.rng, habits::SOLD_AGAIN_DAYS);
            self.owned(second, sold, HORIZON_DAYS);
        } else if self.rng.chance(habits::SCANNED_AFTER_REPAIR) {
            self.owned(kept, back, HORIZON_DAYS);
        }
    }

    /// A tourist buys it at the destination, scans it there or only at home.
    fn taken_home(&mut self) {
        let home = world::destination(self.rng, self.home.country);
        let tourist = Person::new(self.rng, self.mix, home);
        let tourist = self.plan.person(tourist);
        if self.rng.chance(habits::TOURIST_SCANS_THERE) {
            self.plan.visit_in(self.rng, self.bought, tourist, 0, self.home);
        }
        let visits = world::at_least_one(self.rng, shares::OWNER_VISITS.of(self.mix));
        let flight = self.bought + world::between(self.rng, habits::FLIGHT_DAYS);
        self.plan.own(self.rng, tourist, 0, (flight, HORIZON_DAYS), visits);
    }
}
