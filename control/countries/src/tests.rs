use super::*;

fn at(latitude: f64, longitude: f64) -> Candidates {
    find(Coordinates::new(latitude, longitude).unwrap())
}

fn names(found: &Candidates) -> Vec<String> {
    let mut names: Vec<String> = found.all.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

/// An independent list of 300 cities: the country is among the candidates, and mostly the likely one.
#[test]
fn three_hundred_cities_are_in_their_countries() {
    let list = include_str!("../data/cities.csv");
    let (mut count, mut decided, mut wrong) = (0, 0, Vec::new());
    for line in list.lines().skip(1) {
        let mut fields = line.split(',');
        let mut next = || fields.next().unwrap();
        let (country, latitude, longitude, name) = (next(), next(), next(), next());
        let found = at(latitude.parse().unwrap(), longitude.parse().unwrap());
        count += 1;
        decided += usize::from(found.all.len() == 1);
        if !names(&found).contains(&country.to_owned()) {
            wrong.push(format!("{name} in {country}: {found:?}"));
        }
        if found.all.len() == 1 && found.likely != country.parse().ok() {
            wrong.push(format!("{name} in {country} is likely in {found:?}"));
        }
    }
    assert_eq!(count, 300);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(decided >= 240, "only {decided} are decided");
}

#[test]
fn borders_coasts_enclaves_and_seas() {
    for (latitude, longitude, expected, what) in [
        (46.95, 7.45, vec!["CH"], "Bern"),
        (47.56, 7.59, vec!["CH", "DE", "FR"], "Basel, near two borders"),
        (48.2, 7.75, vec!["DE", "FR"], "by the Rhine"),
        (-29.6, 28.2, vec!["LS"], "Lesotho, a hole in South Africa"),
        (-28.0, 25.0, vec!["ZA"], "around it"),
        (43.94, 12.45, vec!["IT", "SM"], "San Marino"),
        (-17.8, 178.0, vec!["FJ"], "Fiji, west of the date line"),
        (65.0, -172.5, vec!["RU"], "Russia, east of the date line"),
        (-85.0, 30.0, vec!["AQ"], "near the South Pole"),
        (67.0, 100.0, vec!["RU"], "Siberia, on the latitude at which Russia crosses the date line"),
        (68.97, 33.08, vec!["RU"], "Murmansk"),
        (66.0, -20.0, vec!["IS"], "Iceland, as far north"),
        (67.0, -160.0, vec!["US"], "Alaska, as far north"),
        (-21.1, 55.5, vec!["RE"], "an overseas department has a code of its own"),
        (0.0, -30.0, vec![], "the Atlantic"),
        (90.0, 0.0, vec![], "the North Pole"),
        (0.0, 180.0, vec![], "the Pacific"),
        (
            42.36,
            -71.06,
            vec!["US"],
            "Boston, opposite to a meridian that borders of China and Mongolia cross",
        ),
        (59.33, 18.06, vec!["SE"], "Stockholm"),
        (10.35, 107.08, vec!["VN"], "Vung Tau"),
        (35.889, -5.32, vec!["ES"], "Ceuta, an exclave"),
        (35.294, -2.938, vec!["ES"], "Melilla"),
        (35.85, -5.36, vec!["ES", "MA"], "Fnideq, beside Ceuta"),
        (36.141, -5.354, vec!["GI"], "Gibraltar"),
        (27.14, -13.19, vec!["EH", "MA"], "Laayoune, which two claim"),
        (44.957, 34.11, vec!["RU", "UA"], "Simferopol"),
        (26.55778, 54.01944, vec!["IR"], "Kish, an island that the outlines leave out"),
        (22.11972, 113.55111, vec!["CN", "MO"], "Coloane, an island near a border"),
    ] {
        let found = at(latitude, longitude);
        assert_eq!(names(&found), expected, "{what}: {found:?}");
        assert_eq!(found.likely.is_some(), !expected.is_empty(), "{what}");
    }
    assert_eq!(at(46.95, 7.45).likely, "CH".parse().ok());
    // Of two near ones, the one that holds the point is likely.
    assert_eq!(at(48.2, 7.75).likely, "DE".parse().ok());
}

#[test]
fn packed_outlines_are_complete() {
    let bytes = include_bytes!("../data/countries.bin");
    let world = World::read(bytes).unwrap();
    assert_eq!(world.0.len(), 241);
    for end in [0, 31, 32, 100, bytes.len() - 1] {
        assert!(World::read(&bytes[..end]).is_none(), "{end}");
    }
}

/// The rings of a country as polygons that continue across the date line, for a reference program.
fn polygons(rings: &[Ring]) -> Vec<geo::Polygon> {
    rings.iter().map(|ring| geo::Polygon::new(ring.points.clone().into(), vec![])).collect()
}

/// `geo` over the same outlines: the point at each multiple of 360 degrees, the parity over all rings.
fn is_inside(polygons: &[geo::Polygon], latitude: f64, longitude: f64) -> bool {
    use geo::Contains;
    let holds = |polygon: &&geo::Polygon| {
        [-360.0, 0.0, 360.0].iter().any(|turn| polygon.contains(&geo::Point::new(longitude + turn, latitude)))
    };
    polygons.iter().filter(holds).count() % 2 == 1
}

/// Distance to the nearest of many points of the lines, along the great circle.
fn km_to(rings: &[Ring], latitude: f64, longitude: f64) -> f64 {
    let from = Coordinates::new(latitude, longitude).unwrap();
    let mut nearest = f64::INFINITY;
    for ((x1, y1), (x2, y2)) in rings.iter().flat_map(Ring::lines) {
        if y1.min(y2) - latitude > 0.2 || latitude - y1.max(y2) > 0.2 {
            continue;
        }
        let steps = ((x2 - x1).hypot(y2 - y1) / 0.01).ceil().max(1.0) as usize;
        for step in 0..=steps {
            let share = step as f64 / steps as f64;
            let (x, y) = (x1 + share * (x2 - x1), y1 + share * (y2 - y1));
            let x = (x + 540.0).rem_euclid(360.0) - 180.0;
            let to = Coordinates::new(y, x).unwrap();
            nearest = nearest.min(distance::distance_km(from, to));
        }
    }
    nearest
}

/// An independent point-in-polygon agrees on points everywhere, at the date line, the poles and opposite to cities.
#[test]
fn random_points_agree_with_a_reference_program() {
    let polygons: Vec<_> = WORLD.0.iter().map(|(country, rings)| (country, polygons(rings), rings)).collect();
    let mut state = 7_u64;
    let mut unit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut points: Vec<(f64, f64)> = vec![(90.0, 0.0), (-90.0, 0.0), (-90.0, 180.0), (-89.99, -179.99)];
    for _ in 0..150 {
        points.push(((2.0 * unit() - 1.0).asin().to_degrees(), unit() * 360.0 - 180.0));
        // Around the date line, and around the poles.
        points.push((unit() * 160.0 - 80.0, 180.0_f64.copysign(unit() - 0.5) * (1.0 - unit() * 0.01)));
        points.push((90.0_f64.copysign(unit() - 0.5) * (1.0 - unit() * 0.2), unit() * 360.0 - 180.0));
    }
    for line in include_str!("../data/cities.csv").lines().skip(1).step_by(6) {
        let mut fields = line.split(',').skip(1).map(|field| field.parse::<f64>().unwrap_or_default());
        let (latitude, longitude) = (fields.next().unwrap(), fields.next().unwrap());
        points.push((latitude, longitude));
        points.push((-latitude, if longitude > 0.0 { longitude - 180.0 } else { longitude + 180.0 }));
        points.push((latitude, if longitude > 0.0 { longitude - 180.0 } else { longitude + 180.0 }));
    }
    let mut on_land = 0;
    for (latitude, longitude) in points {
        let found = WORLD.find(latitude, longitude);
        for (country, shapes, rings) in &polygons {
            let (inside, near) = (is_inside(shapes, latitude, longitude), found.all.contains(country));
            on_land += usize::from(inside);
            assert!(near || !inside, "{latitude} {longitude} is in {country}: {found:?}");
            if near && !inside {
                let km = km_to(rings, latitude, longitude);
                assert!(km <= BORDER_KM * 1.1, "{latitude} {longitude} is {km} km from {country}: {found:?}");
            }
        }
    }
    assert!(on_land > 100, "{on_land}");
}
