//! Items and their lives: genuine, diverted, copied.

use verdicts::domain::assessment::profile::Observation;

use super::{
    Case, Kind,
    assumptions::Figures,
    atlas::{COUNTRIES, Country},
    lines,
    people::{Person, Rng, Town, country},
};

/// The group of genuine items that were bought on a journey.
pub(super) const TOURIST: &str = "bought on a journey";
/// The group of diverted items that somebody scanned inside of the market first.
pub(super) const TRIED_INSIDE: &str = "diverted, tried inside";

pub(super) const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// From the commission to the end of what is looked at.
const END: i64 = 180 * DAY;

/// One item with its scans; the last one is judged.
pub(super) fn case(rng: &mut Rng, figures: &Figures) -> Case {
    let home = country(rng, |_| true);
    let market: Vec<&Country> = if rng.chance(figures.whole_area) {
        COUNTRIES.iter().filter(|one| one.area == home.area).collect()
    } else {
        vec![home]
    };
    let place = rng.fork(3).number();
    let mut item = Item { rng, figures, place, scans: Vec::new(), copies_seen: 0 };
    // As many of each kind as it takes to measure them: precision at other shares is computed.
    let (kind, who, is_tagged) = match item.rng.unit() {
        draw if draw < 0.50 => item.genuine(home),
        draw if draw < 0.75 => item.copied(home),
        _ => item.diverted(home, &market),
    };
    if item.rng.chance(figures.factory) {
        item.in_factory();
    }
    let items_seen = if kind == Kind::Copied { item.copies_seen } else { 1 };
    let mut scans = item.scans;
    scans.retain(|scan| scan.at.0 < END);
    scans.sort_by_key(|scan| (scan.at, scan.agent));
    let market = market.iter().filter_map(|one| one.code.parse().ok()).collect();
    Case { kind, who, market, is_tagged, scans, items_seen }
}

type Made = (Kind, &'static str, bool);

struct Item<'a> {
    rng: &'a mut Rng,
    figures: &'a Figures,
    /// Names the places where it is shown.
    place: u64,
    scans: Vec<Observation>,
    /// Items with a copied code that somebody scanned.
    copies_seen: usize,
}

impl Item<'_> {
    fn genuine(&mut self, home: &'static Country) -> Made {
        let town = Town::of(self.rng, home);
        if self.rng.chance(self.figures.display) {
            self.on_display(town);
            return (Kind::Genuine, "display", self.rng.chance(self.figures.display_tagged));
        }
        let sold = self.time(0, 150);
        if self.rng.chance(self.figures.logistics) {
            let hub = country(self.rng, |one| one.code != home.code);
            let hub = Town::of(self.rng, hub);
            let at = sold / 2;
            self.visitor(hub, hub, at);
        }
        if self.rng.chance(self.figures.shop) {
            for _ in 0..self.rng.between(1, 3) {
                let at = (self.rng.unit() * sold as f64) as i64;
                self.visitor(town, town, at);
            }
        }
        if self.rng.chance(self.figures.tourist) {
            let abroad = country(self.rng, |one| one.code != home.code);
            let live_in = Town::of(self.rng, abroad);
            let person = Person::new(self.rng, live_in, self.figures);
            self.seen(&person, town, sold);
            let days = self.rng.between(1, 14) as i64;
            self.owned(&person, live_in, sold + days * DAY);
            return (Kind::Genuine, TOURIST, false);
        }
        (Kind::Genuine, self.life(town, sold), false)
    }

    fn diverted(&mut self, home: &'static Country, market: &[&Country]) -> Made {
        let sold = self.time(14, 150);
        let is_tried = self.rng.chance(self.figures.tried_inside);
        if is_tried {
            let town = Town::of(self.rng, home);
            let at = (self.rng.unit() * sold as f64) as i64;
            self.visitor(town, town, at);
        }
        let abroad = country(self.rng, |one| market.iter().all(|inside| inside.code != one.code));
        let town = Town::of(self.rng, abroad);
        self.life(town, sold);
        (Kind::Diverted, if is_tried { TRIED_INSIDE } else { "diverted" }, false)
    }

    fn copied(&mut self, home: &'static Country) -> Made {
        let town = Town::of(self.rng, home);
        if self.rng.chance(self.figures.original) {
            let sold = self.time(0, 150);
            self.copy(town, sold);
        }
        let (least, most) = (self.figures.least_copies.ln(), self.figures.most_copies.ln());
        let copies = (least + self.rng.unit() * (most - least)).exp().round() as usize;
        let (who, towns) = self.series(home);
        let (begin, lasts) = (self.time(0, 90), self.time(30, 180));
        for _ in 0..copies {
            let town = *self.rng.pick(&towns);
            // What would be sold after the end is sold before it: so many copies are scanned.
            let at = begin + (self.rng.unit() * lasts.min(END - DAY - begin) as f64) as i64;
            self.copy(town, at);
        }
        (Kind::Copied, who, false)
    }

    /// The life of one of the items with a copied code, counted if it is scanned in time.
    fn copy(&mut self, town: Town, sold: i64) {
        let begin = self.scans.len();
        self.life(town, sold);
        let is_seen = self.scans[begin..].iter().any(|scan| scan.at.0 < END);
        self.copies_seen += usize::from(is_seen);
    }

    /// Where the copies of a series go: one town of the list for each.
    fn series(&mut self, home: &'static Country) -> (&'static str, Vec<Town>) {
        /// Entries of the list, so that shares can be told by it.
        const LIST: usize = 500;
        let figures = self.figures;
        match self.rng.unit() {
            draw if draw < figures.parcels => {
                let count = self.rng.between(2, figures.parcels_countries as usize);
                let others: Vec<&'static Country> =
                    (0..count).map(|_| country(self.rng, |one| one.code != home.code)).collect();
                let one = |rng: &mut Rng| {
                    let there = if rng.chance(figures.parcels_home) { home } else { rng.pick(&others) };
                    Town::of(rng, there)
                };
                ("copies by post", (0..LIST).map(|_| one(self.rng)).collect())
            }
            draw if draw < figures.parcels + figures.container => {
                let is_home = self.rng.chance(figures.container_home);
                let there = if is_home { home } else { country(self.rng, |one| one.code != home.code) };
                let town = Town::of(self.rng, there);
                if self.rng.chance(figures.one_city) {
                    return ("copies in one city", vec![town]);
                }
                ("copies in one country", (0..LIST).map(|_| Town::of(self.rng, there)).collect())
            }
            _ => {
                let first = country(self.rng, |_| true);
                let count = self.rng.between(1, 3);
                let mut near = vec![first];
                near.extend(
                    (0..count)
                        .map(|_| country(self.rng, |one| one.area == first.area && one.code != first.code)),
                );
                let one = |rng: &mut Rng| {
                    let there = *rng.pick(&near);
                    Town::of(rng, there)
                };
                ("copies in one area", (0..LIST).map(|_| one(self.rng)).collect())
            }
        }
    }

    /// What becomes of a thing that is sold, copied or not: nobody who has it knows.
    fn life(&mut self, town: Town, sold: i64) -> &'static str {
        let begin = self.scans.len();
        let person = Person::new(self.rng, town, self.figures);
        let mut who = self.owned(&person, town, sold);
        if self.rng.chance(self.figures.travel) {
            who = "owner on a journey";
            let mut at = sold + self.time(1, 100);
            for _ in 0..self.rng.between(1, 3) {
                let there = country(self.rng, |one| one.code != town.country.code);
                let there = Town::of(self.rng, there);
                // Nobody is in two countries within a day.
                at += self.rng.between(24, 120) as i64 * HOUR;
                for _ in 0..self.rng.between(1, 3) {
                    at += self.rng.between(1, 30) as i64 * HOUR;
                    self.seen(&person, there, at);
                }
            }
        }
        if self.rng.chance(self.figures.resale) {
            who = "resold";
            let at = sold + self.time(14, 150);
            // The first owner scans no more.
            let first = self.scans.split_off(begin);
            self.scans.extend(first.into_iter().filter(|scan| scan.at.0 < at));
            let to = if self.rng.chance(0.85) {
                town.country
            } else {
                country(self.rng, |one| one.code != town.country.code)
            };
            let to = Town::of(self.rng, to);
            let second = Person::new(self.rng, to, self.figures);
            self.owned(&second, to, at);
        }
        who
    }

    /// The scans of an owner and his household at home.
    fn owned(&mut self, person: &Person, town: Town, sold: i64) -> &'static str {
        let is_engaged = self.rng.chance(self.figures.engaged);
        let mut count = 0;
        if is_engaged {
            count = self.rng.between(4, 39);
        } else {
            while self.rng.chance(0.5) {
                count += 1;
            }
        }
        let second = self
            .rng
            .chance(self.figures.household)
            .then(|| Person::new(self.rng, town, self.figures).living_with(person));
        self.seen(person, town, sold);
        for _ in 0..count {
            let is_early = !is_engaged && self.rng.chance(0.5);
            let at = sold + if is_early { self.time(0, 7) } else { self.time(7, 180) };
            match &second {
                Some(second) if self.rng.chance(0.3) => self.seen(second, town, at),
                _ => self.seen(person, town, at),
            }
        }
        match (person.has_exit(), is_engaged) {
            (true, _) => "owner with a VPN",
            (false, true) => "engaged owner",
            (false, false) => "owner",
        }
    }

    fn on_display(&mut self, town: Town) {
        for _ in 0..self.rng.between(10, 120) {
            let at = self.time(0, 179);
            let from = if self.rng.chance(0.1) {
                let abroad = country(self.rng, |one| one.code != town.country.code);
                Town::of(self.rng, abroad)
            } else {
                town
            };
            self.visitor(from, town, at);
        }
    }

    fn in_factory(&mut self) {
        let plant = country(self.rng, |one| ["CN", "IN", "TR", "IT"].contains(&one.code));
        let plant = Town::of(self.rng, plant);
        for _ in 0..self.rng.between(1, 3) {
            let before = self.time(1, 20);
            self.visitor(plant, plant, -before);
        }
    }

    /// One scan of somebody who comes by.
    fn visitor(&mut self, lives_in: Town, is_in: Town, at: i64) {
        let person = Person::new(self.rng, lives_in, self.figures);
        let place = lines::place(self.place, is_in);
        let scan = person.scan(self.rng, at, is_in, Some(place), self.figures);
        self.scans.push(scan);
    }

    fn seen(&mut self, person: &Person, town: Town, at: i64) {
        let scan = person.scan(self.rng, at, town, None, self.figures);
        self.scans.push(scan);
    }

    /// A time span, in whole days from `low` to `high` and some part of a day.
    fn time(&mut self, low: usize, high: usize) -> i64 {
        self.rng.between(low, high) as i64 * DAY + (self.rng.unit() * DAY as f64) as i64
    }
}
