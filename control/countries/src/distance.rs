//! Distances on the earth, and the search for the nearest points.

use std::{cmp::Ordering, collections::BinaryHeap};

use kernel::domain::location::Coordinates;

/// Mean radius of the earth.
const EARTH_RADIUS_KM: f64 = 6_371.008_8;

/// Nothing is farther away: half of a great circle is 20,015.1 km.
pub const MAX_DISTANCE_KM: f64 = 20_016.0;

/// Margin of a box on each side, more than any rounding error: 1 cm.
const MARGIN_DEGREES: f64 = 1e-7;

/// Great-circle distance in kilometres on a sphere; accurate for all pairs of points.
#[must_use]
pub fn distance_km(a: Coordinates, b: Coordinates) -> f64 {
    let (lat_a, lat_b) = (a.latitude().to_radians(), b.latitude().to_radians());
    let turn = (b.longitude() - a.longitude()).to_radians();
    let across = lat_b.cos() * turn.sin();
    let along = lat_a.cos() * lat_b.sin() - lat_a.sin() * lat_b.cos() * turn.cos();
    let dot = lat_a.sin() * lat_b.sin() + lat_a.cos() * lat_b.cos() * turn.cos();
    across.hypot(along).atan2(dot) * EARTH_RADIUS_KM
}

/// A box that holds every point within a distance; `west > east` when it crosses the date line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lowest latitude.
    pub south: f64,
    /// Highest latitude.
    pub north: f64,
    /// Western end.
    pub west: f64,
    /// Eastern end.
    pub east: f64,
}

impl Bounds {
    /// The box around a centre.
    #[must_use]
    pub fn around(center: Coordinates, radius_km: f64) -> Self {
        let angle = (radius_km / EARTH_RADIUS_KM).min(std::f64::consts::PI);
        let reach = angle.to_degrees() + MARGIN_DEGREES;
        let (south, north) = (center.latitude() - reach, center.latitude() + reach);
        if south <= -90.0 || north >= 90.0 {
            // A pole is inside, and all meridians meet there.
            return Self { south: south.max(-90.0), north: north.min(90.0), west: -180.0, east: 180.0 };
        }
        let ratio = reach.to_radians().sin() / center.latitude().to_radians().cos();
        let turn = ratio.min(1.0).asin().to_degrees() + MARGIN_DEGREES;
        let (mut west, mut east) = (center.longitude() - turn, center.longitude() + turn);
        if turn >= 180.0 {
            (west, east) = (-180.0, 180.0);
        } else if west < -180.0 {
            west += 360.0;
        } else if east > 180.0 {
            east -= 360.0;
        }
        Self { south, north, west, east }
    }

    /// Whether the box crosses the date line.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.west > self.east
    }
}

/// Rank by distance; of two at the same distance the older one comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Distance in millimetres: whole numbers, so that pages meet without a gap.
    pub distance_mm: i64,
    /// Order of insertion.
    pub seq: i64,
}

/// The search around a point: rings are tried from the inside out until one holds enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// The point.
    pub center: Coordinates,
    /// Nothing farther away is found.
    pub max_km: f64,
    /// Only what comes after this.
    pub after: Option<Rank>,
    /// How many to find.
    pub limit: usize,
}

impl Search {
    /// Radii to try, growing; the last one is the search's own limit.
    pub fn radii_km(&self) -> impl Iterator<Item = f64> + use<> {
        const FIRST_KM: f64 = 1.0;
        const GROWTH: f64 = 4.0;
        let max = self.max_km.min(MAX_DISTANCE_KM);
        let start = self.after.map_or(0.0, |rank| rank.distance_mm as f64 / MM_PER_KM);
        let first = Some((start * 1.25).max(FIRST_KM).min(max));
        std::iter::successors(first, move |radius| (*radius < max).then(|| (radius * GROWTH).min(max)))
    }

    /// Collects points within a radius.
    #[must_use]
    pub fn within<T>(&self, radius_km: f64) -> Nearest<T> {
        let limit_mm = (radius_km * MM_PER_KM).floor() as i64;
        Nearest { search: *self, limit_mm, best: BinaryHeap::new() }
    }
}

const MM_PER_KM: f64 = 1e6;

/// The nearest points offered so far: never holds more than the search asks for.
#[derive(Debug)]
pub struct Nearest<T> {
    search: Search,
    limit_mm: i64,
    best: BinaryHeap<Found<T>>,
}

impl<T> Nearest<T> {
    /// Offers a point.
    pub fn offer(&mut self, at: Coordinates, seq: i64, item: T) {
        let distance_mm = (distance_km(self.search.center, at) * MM_PER_KM).round() as i64;
        let rank = Rank { distance_mm, seq };
        if distance_mm > self.limit_mm || self.search.after.is_some_and(|after| rank <= after) {
            return;
        }
        self.best.push(Found { rank, item });
        if self.best.len() > self.search.limit {
            self.best.pop();
        }
    }

    /// Whether as many were found as the search asks for.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.best.len() >= self.search.limit
    }

    /// The result, nearest first.
    #[must_use]
    pub fn into_sorted(self) -> Vec<(Rank, T)> {
        self.best.into_sorted_vec().into_iter().map(|found| (found.rank, found.item)).collect()
    }
}

#[derive(Debug)]
struct Found<T> {
    rank: Rank,
    item: T,
}

impl<T> PartialEq for Found<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<T> Eq for Found<T> {}

impl<T> PartialOrd for Found<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Found<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(latitude: f64, longitude: f64) -> Coordinates {
        Coordinates::new(latitude, longitude).unwrap()
    }

    fn holds(bounds: &Bounds, point: Coordinates) -> bool {
        let (latitude, longitude) = (point.latitude(), point.longitude());
        let is_between = if bounds.wraps() {
            longitude >= bounds.west || longitude <= bounds.east
        } else {
            (bounds.west..=bounds.east).contains(&longitude)
        };
        (bounds.south..=bounds.north).contains(&latitude) && is_between
    }

    #[test]
    fn known_distances() {
        for (a, b, expected_km, what) in [
            (at(51.5074, -0.1278), at(48.8566, 2.3522), 343.56, "London to Paris"),
            (at(40.6413, -73.7781), at(35.5494, 139.7798), 10_873.0, "New York to Tokyo"),
            (at(0.0, 179.9), at(0.0, -179.9), 22.239, "across the date line"),
            (at(10.0, 180.0), at(10.0, -180.0), 0.0, "the date line is one meridian"),
            (at(90.0, 12.0), at(90.0, -99.0), 0.0, "the pole is one point"),
            (at(89.9, 0.0), at(89.9, 180.0), 22.239, "over the pole"),
            (at(0.0, 0.0), at(0.0, 180.0), MAX_DISTANCE_KM, "the other end of the world"),
            (at(52.0, 13.0), at(-52.0, -167.0), MAX_DISTANCE_KM, "antipodes"),
            (at(52.0, 13.0), at(52.0, 13.000_001), 0.000_068_46, "7 cm"),
        ] {
            let found = distance_km(a, b);
            assert!((found - expected_km).abs() <= expected_km * 5e-4 + 1e-9, "{what}: {found}");
            assert!((found - distance_km(b, a)).abs() < 1e-9, "{what}: there and back");
        }
    }

    /// Coordinates with many on poles, date line and equator, and many close to each other.
    fn points() -> impl Strategy<Value = Coordinates> {
        let latitude = prop_oneof![
            4 => -90.0..=90.0,
            1 => prop::sample::select(vec![-90.0, -89.999, 0.0, 52.0, 52.0001, 89.999, 90.0]),
        ];
        let longitude = prop_oneof![
            4 => -180.0..=180.0,
            1 => prop::sample::select(vec![-180.0, -179.999, 0.0, 13.0, 13.0001, 179.999, 180.0]),
        ];
        (latitude, longitude).prop_map(|(latitude, longitude)| at(latitude, longitude))
    }

    proptest! {
        #[test]
        fn the_bounding_box_contains_all_near_points(center in points(), point in points(), extra in 0.0..1.0f64) {
            let distance = distance_km(center, point);
            prop_assert!(holds(&Bounds::around(center, distance), point), "at its rim");
            prop_assert!(holds(&Bounds::around(center, distance * (1.0 + extra)), point), "inside");
        }

        #[test]
        fn pages_of_a_search_return_all_near_points_in_order(
            points in prop::collection::vec(points(), 0..60),
            center in points(),
            max_km in prop_oneof![Just(MAX_DISTANCE_KM), 0.001..20_000.0],
            limit in 1_usize..8,
        ) {
            let mut expected: Vec<Rank> = (0..).zip(&points)
                .map(|(seq, point)| (seq, distance_km(center, *point)))
                .map(|(seq, km)| Rank { distance_mm: (km * 1e6).round() as i64, seq })
                .filter(|rank| rank.distance_mm <= (max_km * 1e6).floor() as i64)
                .collect();
            expected.sort();
            let mut found = Vec::new();
            let mut after = None;
            loop {
                let search = Search { center, max_km, after, limit };
                let mut page = Vec::new();
                for radius in search.radii_km() {
                    let (bounds, mut nearest) = (Bounds::around(center, radius), search.within(radius));
                    let inside = (0..).zip(&points).filter(|(_, point)| holds(&bounds, **point));
                    inside.for_each(|(seq, point)| nearest.offer(*point, seq, ()));
                    let is_full = nearest.is_full();
                    page = nearest.into_sorted();
                    if is_full {
                        break;
                    }
                }
                prop_assert!(page.len() <= limit);
                found.extend(page.iter().map(|(rank, ())| *rank));
                if page.len() < limit {
                    break;
                }
                after = page.last().map(|(rank, ())| *rank);
            }
            prop_assert_eq!(found, expected);
        }
    }
}
