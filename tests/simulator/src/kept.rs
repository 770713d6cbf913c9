//! What is left of scans under each setting of `personalData`, and what assessment finds by it.
//!
//! With `truncated` a point is rounded; the device and the network are those of `full`, because the hash of the device is
//! kept and a network is a /24. With `none` there is neither a point nor a network, and a device is the names of its browser
//! and system, as the product reads them. Country, region and language stay. A scan with the place of a sensor keeps its
//! country and region, as if its address were placed there: addresses of such scans are not simulated.

use std::collections::HashMap;

use shared::{personal_data::PersonalData, user_agent::read_agent};
use verdicts::domain::{
    assessment::{
        agent::AgentHash,
        profile::Observation,
        settings::Settings,
        spot::{Point, Precision, Spot},
    },
    location::Coordinates,
    scan_source::Source,
};

use super::{Case, Judged, Population, Report, Rng, judge, people, second};

/// Items of each row of the published table.
pub const KEPT_ITEMS: usize = 4_000;

/// The head of the table.
pub const KEPT_HEAD: &str = "\
| population | `personalData` | copies suspected or called | copies called | others suspected or called | others called | diverted confirmed | genuine confirmed as diverted |
|---|---|---:|---:|---:|---:|---:|---:|
";

/// The table of what assessment finds in the plain mix of both populations, under each setting.
#[must_use]
pub fn kept_table(seed: u64, count: usize) -> String {
    let mut table = KEPT_HEAD.to_owned();
    let plain = |one: &Population| one.mix() == "plain";
    for population in Population::all().into_iter().filter(plain) {
        for kept in PersonalData::ALL {
            let report = Report::of(&run_kept(seed, count, population, kept));
            let name = population.to_string();
            let name = name.split(',').next().unwrap_or_default();
            let shares = [
                report.noticed,
                report.recall,
                report.falsely_noticed,
                report.false_positives,
                report.diversion_seen_again.share,
                report.diversion_false_positives,
            ]
            .map(|share| format!("{:.1} %", share * 100.0));
            table += &format!("| {name} | `{kept}` | {} |\n", shares.join(" | "));
        }
    }
    table
}

/// As [`super::run`], of what an account with a setting keeps of the scans.
#[must_use]
pub fn run_kept(seed: u64, count: usize, population: Population, kept: PersonalData) -> Vec<Judged> {
    let (mut rng, settings, names) = (Rng::new(seed), Settings::default(), Names::of(population));
    (0..count).filter_map(|_| judge(&names.kept(population.case(&mut rng), kept), &settings)).collect()
}

/// By the device of a whole user agent, the device of the names of its browser and system.
struct Names(HashMap<AgentHash, Option<AgentHash>>);

impl Names {
    fn of(population: Population) -> Self {
        let parser = woothee::parser::Parser::new();
        let named = |user_agent: &str| {
            let found = read_agent(&parser, Some(user_agent));
            AgentHash::of(&[found.name, found.system].into_iter().flatten().collect::<Vec<_>>().join(" "))
        };
        let devices = match population {
            Population::First(..) => people::user_agents(),
            Population::Second(_) => second::user_agents(),
        };
        Self(devices.into_iter().map(|(device, user_agent)| (device, named(&user_agent))).collect())
    }

    fn kept(&self, case: Case, kept: PersonalData) -> Case {
        let scans = case.scans.into_iter().map(|seen| self.seen(seen, kept)).collect();
        Case { scans, ..case }
    }

    fn seen(&self, seen: Observation, kept: PersonalData) -> Observation {
        let spot = redact(seen.spot.clone(), kept);
        match kept {
            PersonalData::Full => seen,
            PersonalData::Truncated => Observation { spot, ..seen },
            PersonalData::None => {
                let agent = match seen.source {
                    Source::Edge | Source::Server => {
                        seen.agent.and_then(|agent| self.0.get(&agent).copied().flatten())
                    }
                    // It is the network.
                    Source::Public => None,
                };
                Observation { agent, spot, network: None, ..seen }
            }
        }
    }
}

fn redact(spot: Spot, kept: PersonalData) -> Spot {
    let rounded = spot.point.and_then(Point::coordinates).and_then(|at| {
        let (latitude, longitude) = kept.degrees(at.latitude()).zip(kept.degrees(at.longitude()))?;
        Coordinates::new(latitude, longitude)
    });
    match (kept, rounded) {
        (PersonalData::Full, _) => spot,
        (PersonalData::Truncated | PersonalData::None, Some(at)) => Spot { point: Some(at.into()), ..spot },
        (PersonalData::Truncated | PersonalData::None, None) => {
            let precision = if spot.country.is_some() { Precision::GeoIpCountry } else { Precision::None };
            Spot { precision, point: None, ..spot }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(population: Population) -> Vec<Case> {
        let mut rng = Rng::new(5);
        (0..200).map(|_| population.case(&mut rng)).collect()
    }

    #[test]
    fn every_device_has_names() {
        for population in Population::all() {
            let names = Names::of(population);
            for scan in cases(population).iter().flat_map(|case| &case.scans) {
                let is_known = scan.agent.is_none_or(|agent| names.0.contains_key(&agent));
                assert!(is_known || scan.source == Source::Public, "{population}: {scan:?}");
            }
        }
    }

    #[test]
    fn each_setting_keeps_less() {
        for population in Population::all() {
            let names = Names::of(population);
            let (mut devices, mut points, mut networks) = ([0; 3], [0; 3], [0; 3]);
            for case in cases(population) {
                for (n, kept) in PersonalData::ALL.into_iter().enumerate() {
                    let left = names.kept(case.clone(), kept);
                    let agents: std::collections::HashSet<_> =
                        left.scans.iter().map(|scan| scan.agent).collect();
                    devices[n] += agents.len();
                    points[n] += left.scans.iter().filter(|scan| scan.spot.point.is_some()).count();
                    networks[n] += left.scans.iter().filter(|scan| scan.network.is_some()).count();
                    for (scan, was) in left.scans.iter().zip(&case.scans) {
                        assert_eq!(
                            (scan.at, scan.spot.country, &scan.spot.region, scan.language),
                            (was.at, was.spot.country, &was.spot.region, was.language)
                        );
                    }
                }
            }
            assert!(devices[0] == devices[1] && devices[1] > devices[2], "{population}: {devices:?}");
            for counts in [points, networks] {
                assert!(
                    counts[0] > 0 && counts[0] == counts[1] && counts[2] == 0,
                    "{population}: {counts:?}"
                );
            }
        }
    }

    #[test]
    fn full_is_the_run_without_a_setting() {
        let population = Population::FIRST[0];
        assert_eq!(run_kept(3, 100, population, PersonalData::Full), super::super::run(3, 100, population));
    }
}
