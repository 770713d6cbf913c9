//! What happens to each item of the demo: it follows from the seed, the number of items and the end of the time shown.

use std::{iter, net::Ipv6Addr};

use super::{
    random::Random,
    world::{CITIES, City, DEVICES, PRODUCTS, Product},
};

pub(super) const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Days over which people scan.
const SCANNED_DAYS: i64 = 90;

/// Days before the end in which items are commissioned: before the first scan.
const MADE_DAYS: (i64, i64) = (95, 130);

/// Scans of an item that was copied; more people and countries than any owner has.
const COPIES_SCANNED: usize = 24;

/// Largest distance of a scan from the middle of its city, in degrees: some kilometres.
const AROUND: f64 = 0.03;

/// What happens to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Story {
    /// It is made, and not yet commissioned.
    InProduction,
    /// It is commissioned, and nobody has scanned it.
    InStock,
    /// Its owner scans it at home.
    Sold,
    /// Its code is on many items, all over the world.
    Copied,
    /// It is only seen outside of its markets.
    Diverted,
    /// Its owner takes it along, outside of its markets.
    TakenAlong,
    /// It is seen, and was never commissioned.
    Undeclared,
    /// It was recalled, and is seen.
    Recalled,
    /// An inspector finds that it is not what it says.
    Forged,
    /// It is seen, and nobody knows where.
    Unlocated,
}

impl Story {
    /// The stories of some items; at least 35 of them show each one.
    fn of_all(items: usize) -> Vec<Self> {
        let part = |least: usize, per_mille: usize| least.max(items * per_mille / 1_000);
        let parts = [
            (Self::InProduction, part(2, 50)),
            (Self::Sold, part(5, 400)),
            (Self::Copied, part(2, 4)),
            (Self::Diverted, part(3, 8)),
            (Self::TakenAlong, part(2, 4)),
            (Self::Undeclared, part(2, 4)),
            (Self::Recalled, part(1, 2)),
            (Self::Forged, part(1, 1)),
            (Self::Unlocated, part(2, 4)),
        ];
        let told = parts.into_iter().flat_map(|(story, count)| iter::repeat_n(story, count));
        told.chain(iter::repeat(Self::InStock)).take(items).collect()
    }

    /// Whether the factory declared the item.
    const fn is_commissioned(self) -> bool {
        !matches!(self, Self::InProduction | Self::Undeclared)
    }

    /// Whether its verdict is worth asking for, whoever else is asked about.
    pub(super) const fn is_suspect(self) -> bool {
        !matches!(self, Self::InProduction | Self::InStock | Self::Sold)
    }
}

/// Who scans: one phone in one network.
#[derive(Debug, Clone, Copy)]
struct Person {
    device: &'static str,
    language: &'static str,
    network: u16,
}

/// A scan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scan {
    /// What it is called in the demo: the serial and a number.
    pub(super) name: String,
    /// Milliseconds since 1970.
    pub(super) at: i64,
    /// The city, latitude and longitude; `None` where nobody knows.
    pub(super) place: Option<(&'static City, f64, f64)>,
    pub(super) device: &'static str,
    pub(super) language: &'static str,
    /// An address of those that are kept for documentation: nobody's.
    pub(super) address: Ipv6Addr,
}

/// An item.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// `identifiers.gs1:21`.
    pub(super) serial: String,
    /// Its place in [`PRODUCTS`].
    pub(super) product: usize,
    /// Its place among the factories.
    pub(super) factory: usize,
    pub(super) story: Story,
    /// When it was commissioned.
    pub(super) commissioned_at: Option<i64>,
    /// The scans of people, oldest first.
    pub(super) scans: Vec<Scan>,
    /// What an inspector scanned.
    pub(super) inspection: Option<Scan>,
}

impl Item {
    /// The scan by which it is judged: the last one.
    pub(super) fn judged_by(&self) -> Option<&Scan> {
        self.inspection.as_ref().or_else(|| self.scans.last())
    }
}

/// What serials and GTINs of a seed have in common.
pub(super) fn tag(seed: u32) -> u16 {
    (Random::of(seed, u32::MAX).draw() & 0xFFFF) as u16
}

/// All items of a demo; `end` is the last moment shown.
pub(super) fn items(seed: u32, count: u32, end: i64) -> Vec<Item> {
    let mut stories = Story::of_all(count as usize);
    Random::of(seed, 0).shuffle(&mut stories);
    let tag = tag(seed);
    (1..).zip(stories).map(|(part, story)| item((tag, part), Random::of(seed, part), story, end)).collect()
}

fn item((tag, part): (u16, u32), mut random: Random, story: Story, end: i64) -> Item {
    let serial = format!("DM{tag:04X}{part:06}");
    let product = random.below(PRODUCTS.len());
    let factory = random.below(super::world::FACTORIES.len());
    let (first, last) = MADE_DAYS;
    let made = end - first * DAY_MS - (random.fraction() * ((last - first) * DAY_MS) as f64) as i64;
    let mut scans = StoryScans { serial: &serial, random, end, scans: Vec::new() };
    let inspection = scans.add(story, &PRODUCTS[product]);
    let scans = scans.scans;
    let commissioned_at = story.is_commissioned().then_some(made);
    Item { serial, product, factory, story, commissioned_at, scans, inspection }
}

/// The scans of one item, as they are made up.
struct StoryScans<'a> {
    serial: &'a str,
    random: Random,
    end: i64,
    scans: Vec<Scan>,
}

impl StoryScans<'_> {
    /// Adds the scans of a story; gives that of an inspector, if there is one.
    fn add(&mut self, story: Story, product: &Product) -> Option<Scan> {
        let inside = |city: &City| product.is_sold_in(city);
        let home = self.city(inside);
        let owner = self.person(home);
        match story {
            Story::InProduction | Story::InStock => {}
            Story::Sold => {
                let scans = 1 + self.random.below(4);
                self.scan_often(scans, |_| (Some(home), owner));
            }
            Story::Undeclared | Story::Recalled => self.scan_often(2, |_| (Some(home), owner)),
            Story::Unlocated => self.scan_often(1, |_| (None, owner)),
            Story::Diverted => {
                let abroad = self.city(|city| !inside(city));
                let buyer = self.person(abroad);
                let scans = 3 + self.random.below(2);
                self.scan_often(scans, |_| (Some(abroad), buyer));
            }
            Story::TakenAlong => {
                let abroad = self.city(|city| !inside(city));
                self.scan_often(5, |at| (Some(if at < 4 { home } else { abroad }), owner));
            }
            Story::Copied => {
                let mut places = self.cities(inside, 3);
                places.extend(self.cities(|city| !inside(city), 5));
                let (from, network) = (self.random.below(DEVICES.len()), self.network());
                // The last one is back in the market, where the first one was.
                self.scan_often(COPIES_SCANNED + 1, |at| {
                    let place = places[at % COPIES_SCANNED % places.len()];
                    let device = DEVICES[(from + at) % DEVICES.len()];
                    let network = network.wrapping_add((at % COPIES_SCANNED) as u16);
                    (Some(place), Person { device, language: place.language, network })
                });
            }
            Story::Forged => {
                self.scan_often(2, |_| (Some(home), owner));
                return self.scans.pop();
            }
        }
        None
    }

    /// Adds scans at ordered times; `who` says where each one is, and by whom.
    fn scan_often(&mut self, count: usize, who: impl Fn(usize) -> (Option<&'static City>, Person)) {
        let mut times: Vec<i64> = (0..count).map(|_| self.time()).collect();
        times.sort_unstable();
        for (at, time) in times.into_iter().enumerate() {
            let (place, person) = who(at);
            let place = place.map(|city| (city, self.near(city.latitude), self.near(city.longitude)));
            self.scans.push(Scan {
                name: format!("{}-{}", self.serial, at + 1),
                at: time,
                place,
                device: person.device,
                language: person.language,
                address: Ipv6Addr::new(0x2001, 0x0db8, person.network, 0, 0, 0, 0, 1),
            });
        }
    }

    /// A time in the last days; there are more scans towards the end.
    fn time(&mut self) -> i64 {
        let before = (SCANNED_DAYS * DAY_MS) as f64 * (1.0 - self.random.fraction().sqrt());
        self.end - before as i64
    }

    /// A coordinate near that of a city, with the four digits that are kept of it.
    fn near(&mut self, degrees: f64) -> f64 {
        let moved = degrees + (self.random.fraction() - 0.5) * 2.0 * AROUND;
        (moved * 10_000.0).round() / 10_000.0
    }

    fn city(&mut self, fits: impl Fn(&City) -> bool) -> &'static City {
        self.cities(fits, 1)[0]
    }

    /// Different cities; there are always enough.
    fn cities(&mut self, fits: impl Fn(&City) -> bool, count: usize) -> Vec<&'static City> {
        let mut fitting: Vec<&'static City> = CITIES.iter().filter(|city| fits(city)).collect();
        self.random.shuffle(&mut fitting);
        fitting.truncate(count);
        fitting
    }

    fn person(&mut self, at: &City) -> Person {
        let device = DEVICES[self.random.below(DEVICES.len())];
        Person { device, language: at.language, network: self.network() }
    }

    fn network(&mut self) -> u16 {
        (self.random.draw() & 0xFFFF) as u16
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const END: i64 = 1_767_225_600_000;

    #[test]
    fn the_same_seed_tells_the_same_stories() {
        assert_eq!(items(1, 200, END), items(1, 200, END));
        let serials =
            |seed| items(seed, 200, END).into_iter().map(|item| item.serial).collect::<BTreeSet<_>>();
        assert_eq!(serials(1).len(), 200);
        assert!(serials(1).is_disjoint(&serials(2)));
    }

    #[test]
    fn even_the_smallest_demo_has_every_story() {
        for count in [50, 5_000] {
            let mut stories: BTreeMap<Story, usize> = BTreeMap::new();
            for item in items(3, count, END) {
                *stories.entry(item.story).or_default() += 1;
            }
            assert_eq!(stories.len(), 10, "{count}: {stories:?}");
            assert_eq!(stories.values().sum::<usize>(), count as usize);
        }
    }

    #[test]
    fn items_are_commissioned_before_they_are_scanned_and_all_is_past() {
        for item in items(4, 2_000, END) {
            let times: Vec<i64> = item.scans.iter().chain(&item.inspection).map(|scan| scan.at).collect();
            assert!(times.is_sorted() && times.iter().all(|at| *at <= END), "{item:?}");
            assert!(item.commissioned_at.is_none_or(|made| times.iter().all(|at| made < *at)), "{item:?}");
            let product = &PRODUCTS[item.product];
            let inside =
                item.scans.iter().filter_map(|scan| scan.place).map(|(city, ..)| product.is_sold_in(city));
            let inside: Vec<bool> = inside.collect();
            match item.story {
                Story::InProduction | Story::InStock | Story::Unlocated => assert!(inside.is_empty()),
                Story::Sold | Story::Undeclared | Story::Recalled | Story::Forged => {
                    assert!(!inside.is_empty() && inside.iter().all(|inside| *inside));
                }
                Story::Diverted => assert!(inside.iter().all(|inside| !inside)),
                Story::TakenAlong => assert_eq!(inside, [true, true, true, true, false]),
                Story::Copied => assert_eq!((inside.len(), inside.last()), (COPIES_SCANNED + 1, Some(&true))),
            }
        }
    }
}
