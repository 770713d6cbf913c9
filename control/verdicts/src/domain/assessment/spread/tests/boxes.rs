//! Boxes around points, by hand and by the `geo` crate.

use proptest::prelude::*;

use super::{anywhere, at};
use crate::domain::{
    assessment::spread::{bounding_box, box_diagonal_km},
    location::Coordinates,
};

#[test]
fn boxes_over_the_date_line_and_at_the_poles() {
    for (points, expected, what) in [
        (vec![(0.0, 179.0), (0.0, -179.0)], [0.0, 179.0, 0.0, -179.0], "over the date line"),
        (vec![(0.0, -10.0), (5.0, 10.0)], [0.0, -10.0, 5.0, 10.0], "over Greenwich"),
        (vec![(0.0, 180.0), (1.0, -180.0)], [0.0, -180.0, 1.0, 180.0], "on the date line"),
        (vec![(-17.0, 178.0), (-18.0, -179.0), (-16.0, 177.0)], [-18.0, 177.0, -16.0, -179.0], "Fiji"),
        (vec![(90.0, 0.0), (89.0, 120.0), (89.0, -120.0)], [89.0, -120.0, 90.0, 120.0], "around the pole"),
        (vec![(3.0, 4.0)], [3.0, 4.0, 3.0, 4.0], "one point"),
    ] {
        let points: Vec<Coordinates> = points.into_iter().map(at).collect();
        let found = bounding_box(&points).unwrap();
        // A tie between gaps may be cut at either.
        let width = |[_, west, _, east]: [f64; 4]| (east - west).rem_euclid(360.0);
        assert_eq!((found[0], found[2]), (expected[0], expected[2]), "{what}: {found:?}");
        assert!((width(found) - width(expected)).abs() < 1e-9, "{what}: {found:?}");
    }
    assert_eq!((bounding_box(&[]), box_diagonal_km(&[])), (None, 0.0));
    let fiji = [at((-17.0, 179.5)), at((-17.0, -179.5))];
    assert!(box_diagonal_km(&fiji) < 107.0, "{}", box_diagonal_km(&fiji));
    assert!(box_diagonal_km(&[at((90.0, 10.0)), at((90.0, -170.0))]) < 1e-6, "the pole is one point");
}

fn is_inside([south, west, north, east]: [f64; 4], point: Coordinates) -> bool {
    let longitude = point.longitude();
    let between = if west <= east {
        (west..=east).contains(&longitude)
    } else {
        longitude >= west || longitude <= east
    };
    between && (south..=north).contains(&point.latitude())
}

proptest! {
    /// Every point is in the box, and no rotation of the globe gives a narrower one.
    #[test]
    fn boxes_are_the_smallest(points in prop::collection::vec(anywhere(), 1..12)) {
        let found = bounding_box(&points).unwrap();
        prop_assert!(points.iter().all(|point| is_inside(found, *point)), "{found:?}");
        let width = (found[3] - found[1]).rem_euclid(360.0);
        for start in &points {
            let turned = points.iter().map(|point| (point.longitude() - start.longitude()).rem_euclid(360.0));
            // 180 and -180 are one meridian, which the box may have at both ends.
            let theirs = turned.fold(0.0, f64::max);
            prop_assert!(width <= theirs + 1e-9 || found[3] - found[1] == 360.0, "{width} {theirs}");
        }
    }

    /// The same box by the `geo` crate where it crosses nothing.
    #[test]
    fn boxes_that_cross_nothing_are_those_of_the_geo_crate(
        points in prop::collection::vec((-89.0..89.0_f64, -80.0..80.0_f64).prop_map(at), 1..12),
    ) {
        use geo::BoundingRect;
        let many = geo::MultiPoint::from_iter(points.iter().map(|c| geo::Point::new(c.longitude(), c.latitude())));
        let theirs = many.bounding_rect().unwrap();
        let expected = [theirs.min().y, theirs.min().x, theirs.max().y, theirs.max().x];
        prop_assert_eq!(bounding_box(&points), Some(expected));
    }
}
