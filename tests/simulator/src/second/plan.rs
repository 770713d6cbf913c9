//! What happens to an item, turned into the scans that the service gets.

use countries::CountryCode;
use shared::time::UnixMillis;
use verdicts::domain::{
    assessment::{profile::Observation, spot::Spot},
    scan_source::Source,
};

use super::super::{Case, Kind, Rng, lines, people::Town};
use super::{
    Mix, facts, habits,
    people::{Person, Stay, YEAR_DAYS, city},
    phones::Phone,
    shares,
    world::{self, DAY},
};

const MINUTE: i64 = 60_000;

/// Somebody scans an item.
#[derive(Debug, Clone, Copy)]
struct Visit {
    at: i64,
    person: usize,
    item: usize,
    /// Where, if it is not where the person happens to be.
    shop: Option<Town>,
}

/// A visit whose place is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Happening {
    pub at: i64,
    pub stay: Stay,
    person: usize,
    item: usize,
}

/// What a case is, beside its scans.
#[derive(Debug)]
pub(super) struct About {
    pub kind: Kind,
    pub who: &'static str,
    pub market: Vec<CountryCode>,
    pub is_tagged: bool,
}

/// The visits to all items with one code. Item 0 is the genuine one.
#[derive(Debug, Default)]
pub(super) struct Plan {
    people: Vec<Person>,
    visits: Vec<Visit>,
    trade: Vec<Observation>,
    /// Names the places where the item is scanned.
    place: u64,
}

impl Plan {
    /// A plan with what factories and warehouses report.
    pub(super) fn new(rng: &mut Rng, mix: Mix, sold_in: Town) -> Self {
        let mut plan = Self { place: rng.fork(3).number(), ..Self::default() };
        let factory = world::by_code(world::weighted(rng, shares::FACTORIES));
        let factory = world::town_in(rng, factory);
        if rng.chance(shares::FACTORY_SCANS) {
            for _ in 0..world::count(rng, habits::FACTORY_STEPS) {
                let at = -(world::exponential(rng, habits::FACTORY_DAYS * DAY as f64) as i64) - MINUTE;
                plan.report(rng, at, factory);
            }
        }
        if rng.chance(shares::FACTORY_CHECK) {
            let worker = Person::new(rng, mix, factory);
            let worker = plan.person(worker);
            let at = world::count(rng, habits::CHECK_MINUTES) as i64 * MINUTE;
            plan.visit_at(at, worker, 0, factory);
        }
        if rng.chance(shares::WAREHOUSE_SCANS) {
            let (mean, most) = habits::WAREHOUSE_DAYS;
            let days = mean + world::exponential(rng, mean).min(most);
            let at = (days * DAY as f64) as i64;
            let warehouse = world::town_in(rng, sold_in.country);
            plan.report(rng, at, warehouse);
        }
        plan
    }

    /// A scan by a system of the trade, with a key that is trusted.
    fn report(&mut self, rng: &mut Rng, at: i64, town: Town) {
        let agent = Phone::hand_scanner().agent(0);
        let spot = city(rng, town);
        self.trade.push(Observation {
            at: UnixMillis(at),
            agent,
            spot,
            is_implicit: false,
            source: Source::Server,
            network: Some(lines::of_place(lines::place(self.place, town))),
            language: None,
        });
    }

    /// Adds somebody who may scan.
    pub(super) fn person(&mut self, person: Person) -> usize {
        self.people.push(person);
        self.people.len() - 1
    }

    /// Somebody scans wherever they are on a day.
    pub(super) fn visit(&mut self, rng: &mut Rng, day: f64, person: usize, item: usize) {
        let home = self.people[person].home_at(day as i64 * DAY);
        let at = world::moment(rng, day, home);
        self.visits.push(Visit { at, person, item, shop: None });
    }

    /// Somebody scans in a certain town on a day.
    pub(super) fn visit_in(&mut self, rng: &mut Rng, day: f64, person: usize, item: usize, town: Town) {
        let at = world::moment(rng, day, town);
        self.visit_at(at, person, item, town);
    }

    /// Somebody scans in a certain town at a time.
    pub(super) fn visit_at(&mut self, at: i64, person: usize, item: usize, town: Town) {
        self.visits.push(Visit { at, person, item, shop: Some(town) });
    }

    /// An owner scans after unpacking something, and then less and less.
    pub(super) fn own(
        &mut self,
        rng: &mut Rng,
        person: usize,
        item: usize,
        (from, to): (f64, f64),
        visits: usize,
    ) {
        let first = (from + world::exponential(rng, habits::UNPACKING_DAYS)).min(to);
        self.visit(rng, first, person, item);
        for _ in 1..visits {
            let day = first + (to - first) * rng.unit().powf(habits::WEARING_OFF);
            self.visit(rng, day, person, item);
        }
    }

    /// When an item other than the genuine one is first scanned.
    pub(super) fn first_copy(&self) -> Option<i64> {
        self.visits.iter().filter(|visit| visit.item != 0).map(|visit| visit.at).min()
    }

    /// The case up to one of the visits that may be judged: the last one, or any.
    ///
    /// `None` when no visit may be judged.
    pub(super) fn finish(
        self,
        rng: &mut Rng,
        mix: Mix,
        about: About,
        may_be_judged: impl Fn(&Happening) -> bool,
    ) -> Option<Case> {
        let mut happened: Vec<Happening> = Vec::with_capacity(self.visits.len());
        for Visit { at, person, item, shop } in self.visits {
            let who = &self.people[person];
            let stay = match shop {
                Some(town) => who.visiting(rng, mix, town, at, self.place),
                None => who.whereabouts(rng, at),
            };
            happened.push(Happening { at, stay, person, item });
        }
        happened.sort_by_key(|one| one.at);
        let candidates: Vec<usize> = (0..happened.len()).filter(|at| may_be_judged(&happened[*at])).collect();
        let last = *candidates.last()?;
        let judged = if rng.chance(habits::JUDGED_LAST) { last } else { *rng.pick(&candidates) };
        happened.truncate(judged + 1);

        // A check in the factory, on the first day, is not what makes two items with one code.
        let mut items: Vec<usize> = happened.iter().filter(|one| one.at >= DAY).map(|one| one.item).collect();
        items.sort_unstable();
        items.dedup();
        let items_seen = if about.kind == Kind::Copied { items.len() } else { 1 };

        let last = happened.pop()?;
        let mut scans = self.trade;
        for one in &happened {
            scan(rng, mix, &self.people[one.person], one, &mut scans);
        }
        scans.retain(|seen| seen.at.0 < last.at);
        scans.push(redirect(rng, mix, &self.people[last.person], &last));
        scans.sort_by_key(|seen| seen.at);
        let About { kind, who, market, is_tagged } = about;
        Some(Case { kind, who, market, is_tagged, scans, items_seen })
    }
}

/// A redirect by the edge that is judged: its place is the phone's own where the phone tells it.
fn redirect(rng: &mut Rng, mix: Mix, person: &Person, one: &Happening) -> Observation {
    let mut seen = by_edge(rng, mix, person, one, one.at);
    if let Some(spot) = person.by_sensor(rng, one.stay) {
        seen.spot = spot;
    }
    seen
}

fn by_edge(rng: &mut Rng, mix: Mix, person: &Person, one: &Happening, at: i64) -> Observation {
    let phone = person.phone_at(rng, at);
    let years = at / (YEAR_DAYS as i64 * DAY);
    let (agent, language) = (phone.agent(years), person.language(rng, phone));
    let is_without_agent = rng.chance(facts::NO_AGENT.of(mix));
    let (spot, network) = person.by_address(rng, mix, one.stay, phone, at);
    Observation {
        at: UnixMillis(at),
        agent: agent.filter(|_| !is_without_agent),
        spot,
        is_implicit: true,
        source: Source::Edge,
        network: Some(network),
        language,
    }
}

/// All that an earlier visit leaves: a redirect, repeated ones, and the place that the page was given.
fn scan(rng: &mut Rng, mix: Mix, person: &Person, one: &Happening, scans: &mut Vec<Observation>) {
    let first = by_edge(rng, mix, person, one, one.at);
    if rng.chance(facts::BY_APPLICATION.of(mix)) {
        let country = first.spot.country.map(|country| country.to_string());
        scans.push(Observation {
            agent: Some(person.network()),
            spot: Spot::of_address(false, None, country.as_deref(), None),
            is_implicit: false,
            source: Source::Public,
            ..first
        });
        return;
    }
    if let Some(spot) = person.by_sensor(rng, one.stay) {
        let at = UnixMillis(one.at + world::count(rng, habits::SENSOR_SECONDS) as i64 * 1_000);
        scans.push(Observation { at, spot, is_implicit: false, source: Source::Server, ..first.clone() });
    }
    if rng.chance(facts::RESCANS.of(mix)) {
        for _ in 0..world::count(rng, habits::RESCAN_TIMES) {
            let later = one.at + world::exponential(rng, habits::RESCAN_MINUTES * MINUTE as f64) as i64;
            let agent = first.agent;
            scans.push(Observation { agent, ..by_edge(rng, mix, person, one, later) });
        }
    }
    scans.push(first);
}
