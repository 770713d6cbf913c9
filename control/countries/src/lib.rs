//! The country of a point: Natural Earth's outlines at 1:50m, compiled into the program (`control/countries/data`).
//! Also distances on the earth.

mod code;
pub mod distance;
mod exceptions;

pub use code::{CountryCode, InvalidCountry};

use std::sync::LazyLock;

use kernel::domain::location::Coordinates;

/// As near to a border as this, the country is undecided; as near to a coast, the point is on land.
pub const BORDER_KM: f64 = 10.0;

/// Kilometres of a degree of latitude.
const KM_PER_DEGREE: f64 = 111.195;

static WORLD: LazyLock<World> =
    LazyLock::new(|| World::read(include_bytes!("../data/countries.bin")).unwrap_or_default());

/// The candidates for the country of a point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidates {
    /// The country whose outline holds the point, else the nearest one.
    pub likely: Option<CountryCode>,
    /// Every country that it may be in: more than one within [`BORDER_KM`] of a border, none at sea.
    pub all: Vec<CountryCode>,
}

impl Candidates {
    /// The country, where it is decided: one that is not counts as none.
    #[must_use]
    pub fn decided(&self) -> Option<CountryCode> {
        self.likely.filter(|_| self.all.len() == 1)
    }
}

/// The country of a point.
#[must_use]
pub fn find(at: Coordinates) -> Candidates {
    exceptions::apply(at, WORLD.find(at.latitude(), at.longitude()))
}

/// A closed line, in degrees of longitude and latitude, with the box around it.
#[derive(Debug)]
struct Ring {
    points: Vec<(f64, f64)>,
    south: f64,
    north: f64,
    /// Longitudes of the line, continued across the date line: they may exceed 180 degrees.
    west: f64,
    east: f64,
}

#[derive(Debug, Default)]
struct World(Vec<(CountryCode, Vec<Ring>)>);

impl World {
    fn find(&self, latitude: f64, longitude: f64) -> Candidates {
        let mut found = Vec::new();
        for (country, rings) in &self.0 {
            let near: Vec<&Ring> = rings.iter().filter(|ring| ring.may_reach(latitude, longitude)).collect();
            // A point inside a hole is inside two rings: the parity decides.
            let is_inside = near.iter().filter(|ring| ring.holds(latitude, longitude)).count() % 2 == 1;
            let km = near.iter().map(|ring| ring.km_to(latitude, longitude)).fold(f64::INFINITY, f64::min);
            if is_inside || km <= BORDER_KM {
                found.push((!is_inside, km, *country));
            }
        }
        found.sort_by(|one, other| (one.0, one.2).cmp(&(other.0, other.2)).then(one.1.total_cmp(&other.1)));
        let nearest = found.iter().min_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        Candidates {
            likely: nearest.map(|(_, _, country)| *country),
            all: found.iter().map(|(_, _, country)| *country).collect(),
        }
    }

    /// Reads the packed form; `None` when it is something else.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let mut doubles = [0.0; 4];
        for double in &mut doubles {
            *double = f64::from_le_bytes(reader.take(8)?.try_into().ok()?);
        }
        let [scale_x, scale_y, move_x, move_y] = doubles;
        let mut arcs = Vec::new();
        for _ in 0..reader.number()? {
            let (mut x, mut y) = (0_i64, 0_i64);
            let mut arc = Vec::new();
            for _ in 0..reader.number()? {
                (x, y) = (x + reader.signed()?, y + reader.signed()?);
                arc.push((x as f64 * scale_x + move_x, y as f64 * scale_y + move_y));
            }
            arcs.push(arc);
        }
        let mut countries = Vec::new();
        for _ in 0..reader.number()? {
            let country = CountryCode::new(reader.take(2)?.try_into().ok()?)?;
            let mut rings = Vec::new();
            for _ in 0..reader.number()? {
                let mut points: Vec<(f64, f64)> = Vec::new();
                for _ in 0..reader.number()? {
                    let index = reader.signed()?;
                    let arc: &Vec<(f64, f64)> = arcs.get(usize::try_from(index.max(!index)).ok()?)?;
                    if index >= 0 { points.extend(arc) } else { points.extend(arc.iter().rev()) }
                }
                rings.push(Ring::new(points));
            }
            countries.push((country, rings));
        }
        reader.0.is_empty().then_some(Self(countries))
    }
}

impl Ring {
    /// The line as it runs on over the date line; one around a pole is closed through the pole.
    fn new(given: Vec<(f64, f64)>) -> Self {
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(given.len() + 3);
        for (longitude, latitude) in given {
            let before = points.last().map_or(longitude, |(before, _)| *before);
            let step = (longitude - before + 540.0).rem_euclid(360.0) - 180.0;
            points.push((before + step, latitude));
        }
        if let (Some(first), Some(last)) = (points.first().copied(), points.last().copied())
            && (last.0 - first.0).abs() > 180.0
        {
            let pole = 90.0_f64.copysign(first.1);
            points.extend([(last.0, pole), (first.0, pole), first]);
        }
        let latitudes = || points.iter().map(|(_, latitude)| *latitude);
        let south = latitudes().fold(f64::INFINITY, f64::min);
        let north = latitudes().fold(f64::NEG_INFINITY, f64::max);
        let longitudes = || points.iter().map(|(longitude, _)| *longitude);
        let west = longitudes().fold(f64::INFINITY, f64::min);
        let east = longitudes().fold(f64::NEG_INFINITY, f64::max);
        Self { points, south, north, west, east }
    }

    /// Whether the point is in the box around the line, or within [`BORDER_KM`] of it.
    fn may_reach(&self, latitude: f64, longitude: f64) -> bool {
        let margin = BORDER_KM / KM_PER_DEGREE;
        if !(self.south - margin..=self.north + margin).contains(&latitude) {
            return false;
        }
        // A degree of longitude is shorter towards the poles; beside them every longitude is near.
        let across = margin / latitude.to_radians().cos().max(1e-6);
        [-360.0, 0.0, 360.0]
            .iter()
            .any(|turn| (self.west - across..=self.east + across).contains(&(longitude + turn)))
    }

    fn lines(&self) -> impl Iterator<Item = ((f64, f64), (f64, f64))> {
        self.points.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)))
    }

    /// Whether the point is inside, for any multiple of 360 degrees.
    fn holds(&self, latitude: f64, longitude: f64) -> bool {
        [-360.0, 0.0, 360.0].iter().any(|turn| self.holds_flat(latitude, longitude + turn))
    }

    /// Whether a ray to the east crosses the line an odd number of times.
    fn holds_flat(&self, latitude: f64, longitude: f64) -> bool {
        let crosses = |((x1, y1), (x2, y2)): &((f64, f64), (f64, f64))| {
            (*y1 > latitude) != (*y2 > latitude) && longitude < (x2 - x1) * (latitude - y1) / (y2 - y1) + x1
        };
        self.lines().filter(crosses).count() % 2 == 1
    }

    /// Distance to the line in kilometres, on the flat: right to a percent as near as it matters.
    fn km_to(&self, latitude: f64, longitude: f64) -> f64 {
        let across = latitude.to_radians().cos();
        // Longitudes are unwrapped around the point, as the other side of the date line is as near. The second end is
        // unwrapped relative to the first: by itself, a segment that crosses the opposite meridian would become a
        // line through the point.
        let turn = |x: f64| (x - longitude + 540.0).rem_euclid(360.0) - 180.0;
        let margin = BORDER_KM / KM_PER_DEGREE;
        let mut nearest = f64::INFINITY;
        for ((x1, y1), (x2, y2)) in self.lines() {
            if (y1.min(y2) - latitude) > margin || (latitude - y1.max(y2)) > margin {
                continue;
            }
            let from = (turn(x1) * across, y1 - latitude);
            let (dx, dy) = ((x2 - x1) * across, y2 - y1);
            let length = dx * dx + dy * dy;
            let share = if length > 0.0 { -(from.0 * dx + from.1 * dy) / length } else { 0.0 };
            let share = share.clamp(0.0, 1.0);
            nearest = nearest.min((from.0 + share * dx).hypot(from.1 + share * dy));
        }
        nearest * KM_PER_DEGREE
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        // Halves alternate: even numbers are not negative.
        Some(if number % 2 == 0 { (number / 2) as i64 } else { -((number / 2) as i64) - 1 })
    }
}

#[cfg(test)]
mod tests;
