//! Distances between points of a globe, and the smallest box around them.

use countries::distance::distance_km;

use crate::domain::location::Coordinates;

/// Largest distance between two of some points, in kilometres.
#[must_use]
pub fn largest_km(points: &[Coordinates]) -> f64 {
    let pairs = points.iter().enumerate().flat_map(|(at, one)| {
        points.get(at + 1..).unwrap_or_default().iter().map(|other| distance_km(*one, *other))
    });
    pairs.fold(0.0, f64::max)
}

/// The smallest box around some points: south, west, north, east; `west > east` when it crosses the date line.
///
/// `None` without points. Its longitudes are the complement of the largest gap between two neighbours.
#[must_use]
pub fn bounding_box(points: &[Coordinates]) -> Option<[f64; 4]> {
    let latitudes = || points.iter().map(|point| point.latitude());
    let (south, north) =
        (latitudes().fold(f64::INFINITY, f64::min), latitudes().fold(f64::NEG_INFINITY, f64::max));
    let mut longitudes: Vec<f64> = points.iter().map(|point| point.longitude()).collect();
    longitudes.sort_unstable_by(f64::total_cmp);
    let (first, last) = (*longitudes.first()?, *longitudes.last()?);
    // The gap over the date line, behind the last one.
    let (mut gap, mut west, mut east) = (first + 360.0 - last, first, last);
    for pair in longitudes.windows(2) {
        if let [before, after] = pair
            && after - before > gap
        {
            (gap, west, east) = (after - before, *after, *before);
        }
    }
    Some([south, west, north, east])
}

/// Diagonal of the smallest box around some points, in kilometres; 0 without two of them.
#[must_use]
pub fn box_diagonal_km(points: &[Coordinates]) -> f64 {
    let corners = bounding_box(points).and_then(|[south, west, north, east]| {
        Coordinates::new(south, west).zip(Coordinates::new(north, east))
    });
    corners.map_or(0.0, |(from, to)| distance_km(from, to))
}
