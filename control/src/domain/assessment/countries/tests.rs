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
    let list = include_str!("../../../../data/cities.csv");
    let (mut count, mut decided, mut wrong) = (0, 0, Vec::new());
    for line in list.lines().skip(1) {
        let mut fields = line.split(',');
        let mut next = || fields.next().unwrap();
        let (country, latitude, longitude, name) = (next(), next(), next(), next());
        let found = at(latitude.parse().unwrap(), longitude.parse().unwrap());
        count += 1;
        decided += usize::from(found.all.len() == 1);
        // Natural Earth draws the line where it is controlled: the west of Western Sahara is in Morocco.
        let country = if country == "EH" { "MA" } else { country };
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
fn the_packed_form_is_whole() {
    let bytes = include_bytes!("../../../../data/countries.bin");
    let world = World::read(bytes).unwrap();
    assert_eq!(world.0.len(), 241);
    for end in [0, 31, 32, 100, bytes.len() - 1] {
        assert!(World::read(&bytes[..end]).is_none(), "{end}");
    }
}
