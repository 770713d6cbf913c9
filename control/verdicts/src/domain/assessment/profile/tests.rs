use proptest::prelude::*;

use super::*;
use crate::domain::location::Coordinates;

prop_compose! {
    pub(in crate::domain::assessment) fn spots()(
        kind in 0..4_u8,
        latitude in -90.0..=90.0_f64,
        longitude in -180.0..=180.0_f64,
        country in prop::sample::select(vec!["CH", "DE", "FR", "US", "FJ"]),
        region in prop::option::of(prop::sample::select(vec!["Bern", "Zürich", "North"])),
    ) -> Spot {
        let at = Coordinates::new(latitude, longitude);
        match kind {
            0 => Spot::NOWHERE,
            1 => Spot::of_address(false, at, Some(country), region),
            2 => Spot::of_address(true, at, Some(country), region),
            _ => Spot::of_sensor(at.unwrap(), country.parse().ok(), region),
        }
    }
}

prop_compose! {
    pub(in crate::domain::assessment) fn scans()(
        at in 0..40 * SESSION_MS,
        agent in prop::option::of(1..6_u64),
        spot in spots(),
        is_implicit in any::<bool>(),
        network in prop::option::of(0..5_u16),
        language in prop::option::of(prop::sample::select(vec!["de", "en-GB", "gsw"])),
    ) -> Observation {
        let source = Source::Edge;
        let (network, language) = (network.map(NetworkHash), language.and_then(Language::of_tag));
        Observation { at: UnixMillis(at), agent: agent.map(AgentHash), spot, is_implicit, source, network, language }
    }
}

prop_compose! {
    /// Scans of which some are by public keys.
    fn mixed()(seen in scans(), is_public in prop::bool::weighted(0.3)) -> Observation {
        let source = if is_public { Source::Public } else { seen.source };
        Observation { source, ..seen }
    }
}

fn read(profile: &Profile) -> Profile {
    let (sessions, unverified) = (profile.to_bytes(), profile.unverified_to_bytes());
    Profile::from_bytes(&sessions, &unverified, &profile.clients_to_bytes()).unwrap()
}

proptest! {
    #[test]
    fn the_order_of_arrival_changes_nothing(
        scans in prop::collection::vec(mixed(), 0..150),
        seed in any::<u64>(),
    ) {
        let mut shuffled = scans.clone();
        let mut state = seed | 1;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            shuffled.swap(at, (state >> 33) as usize % (at + 1));
        }
        prop_assert_eq!(Profile::of(&scans), Profile::of(&shuffled));
    }

    #[test]
    fn stored_profiles_round_trip_and_are_small(scans in prop::collection::vec(mixed(), 0..150)) {
        // Through the store after each scan, as the intake does, and in one go.
        let mut kept = Profile::default();
        for seen in &scans {
            kept = read(&kept);
            kept.add(seen);
        }
        prop_assert_eq!(&kept, &Profile::of(&scans));
        let size = kept.to_bytes().len() + kept.unverified_to_bytes().len() + kept.clients_to_bytes().len();
        prop_assert!(kept.len() <= MAX_SESSIONS && kept.unverified().count() <= MAX_UNVERIFIED);
        prop_assert!(size <= 3_584, "{size}");
    }

    /// A scan that is removed leaves the profile that the others make.
    #[test]
    fn removing_a_scan_undoes_it(
        scans in prop::collection::vec(mixed(), 1..150),
        which in any::<prop::sample::Index>(),
    ) {
        let mut left = scans.clone();
        let gone = left.remove(which.index(scans.len()));
        let key = SessionKey::of(gone.at, gone.agent);
        let (before, after) = (Profile::of(&scans), Profile::of(&left));
        if before.holds(gone.source, key) {
            prop_assert_eq!(before.corrected(gone.source, key, &after), after);
        } else {
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = Profile::from_bytes(&bytes, &bytes, &bytes);
        let known = Observation {
            at: UnixMillis(1), agent: None, spot: Spot::NOWHERE, is_implicit: true, source: Source::Edge,
            network: Some(NetworkHash(7)), language: Language::of_tag("de"),
        };
        let mut clients = Profile::of(&[known]).clients_to_bytes();
        clients.truncate((bytes.len() % clients.len()).max(1));
        prop_assert_eq!(Profile::from_bytes(b"", b"", &clients), Err(InvalidProfile));
        let mut cut = Profile::of(&[Observation {
            at: UnixMillis(1), agent: None, spot: Spot::NOWHERE, is_implicit: true, source: Source::Edge, network: None, language: None,
        }]).to_bytes();
        cut.truncate((bytes.len() % cut.len()).max(1));
        prop_assert_eq!(Profile::from_bytes(&cut, b"", b""), Err(InvalidProfile));
        prop_assert_eq!(Profile::from_bytes(b"", &cut, b""), Err(InvalidProfile));
    }
}

#[test]
fn a_session_is_one_device_in_half_an_hour() {
    let seen = |at, agent, is_implicit| Observation {
        at: UnixMillis(at),
        agent: Some(AgentHash(agent)),
        spot: Spot::NOWHERE,
        is_implicit,
        source: Source::Edge,
        network: None,
        language: None,
    };
    let scans = [
        seen(0, 1, true),
        seen(5, 1, true),
        seen(SESSION_MS - 1, 1, false),
        seen(7, 2, true),
        seen(SESSION_MS, 1, true),
    ];
    let profile = Profile::of(&scans);
    let told: Vec<_> =
        profile.sessions().map(|(key, one)| (key.agent().0, one.first.0, one.last.0, one.implicit)).collect();
    assert_eq!(told, [(1, 0, SESSION_MS - 1, 2), (2, 7, 7, 1), (1, SESSION_MS, SESSION_MS, 1)]);
}

#[test]
fn the_most_accurate_position_counts() {
    let at = Coordinates::new(46.9, 7.4).unwrap();
    let city = Spot::of_address(true, Some(at), Some("CH"), None);
    let sensor = Spot::of_sensor(at, "CH".parse().ok(), None);
    let seen = |at, spot: &Spot| Observation {
        at: UnixMillis(at),
        agent: None,
        spot: spot.clone(),
        is_implicit: false,
        source: Source::Edge,
        network: None,
        language: None,
    };
    let profile = Profile::of(&[seen(1, &Spot::NOWHERE), seen(2, &city), seen(9, &sensor), seen(3, &city)]);
    assert_eq!(profile.sessions().map(|(_, one)| one.spot.clone()).collect::<Vec<_>>(), [sensor]);
}

#[test]
fn the_last_sessions_are_kept() {
    let seen = |n: i64| Observation {
        at: UnixMillis(n * SESSION_MS),
        agent: None,
        spot: Spot::NOWHERE,
        is_implicit: true,
        source: Source::Server,
        network: None,
        language: None,
    };
    let profile = Profile::of(&(0..100).map(seen).collect::<Vec<_>>());
    let firsts: Vec<i64> = profile.sessions().map(|(_, one)| one.first.0 / SESSION_MS).collect();
    assert_eq!(firsts, (36..100).collect::<Vec<_>>());
}

/// However many scans come by public keys, the others stay.
#[test]
fn public_scans_evict_no_sessions() {
    let seen = |n: i64, agent, source| Observation {
        at: UnixMillis(n * SESSION_MS),
        agent: Some(AgentHash(agent)),
        spot: Spot::NOWHERE,
        is_implicit: false,
        source,
        network: None,
        language: None,
    };
    let own: Vec<Observation> = (0..60).map(|n| seen(n, 1, Source::Edge)).collect();
    let botnet = (0..200).map(|n| seen(100, n + 2, Source::Public));
    let profile = Profile::of(&own.iter().cloned().chain(botnet).collect::<Vec<_>>());
    assert_eq!(profile.to_bytes(), Profile::of(&own).to_bytes());
    assert_eq!((profile.len(), profile.unverified().count()), (60, MAX_UNVERIFIED));
    assert!(profile.unverified().all(|(_, session)| session.implicit == 1), "scans of each type count");
}

/// What networks and languages take is little: three bytes for most sessions.
#[test]
fn networks_and_languages_are_kept_and_are_small() {
    let seen = |n: i64, network: u16, tag: &str| Observation {
        at: UnixMillis(n * SESSION_MS),
        agent: Some(AgentHash(1)),
        spot: Spot::NOWHERE,
        is_implicit: true,
        source: Source::Edge,
        network: Some(NetworkHash(network)),
        language: Language::of_tag(tag),
    };
    let tags = ["de-CH", "en", "fr", "pt-BR", "gsw", ""];
    let scans: Vec<Observation> = (0..70).map(|n| seen(n, n as u16, tags[n as usize % tags.len()])).collect();
    let profile = Profile::of(&scans);
    assert_eq!(read(&profile), profile);
    let size = profile.clients_to_bytes().len();
    assert!(size <= 3 + 5 * 3 + MAX_SESSIONS * 3, "{size}");
    assert!(profile.to_bytes().len() + size < 3_000);
    let told: Vec<_> = profile.sessions().map(|(_, one)| (one.network, one.language)).collect();
    let expected: Vec<_> = scans[6..].iter().map(|one| (one.network, one.language)).collect();
    assert_eq!(told, expected);
}

/// In half an hour one device may have two networks, and two phones may have one user agent.
#[test]
fn of_several_networks_and_languages_the_least_is_kept() {
    let seen = |at, network: Option<u16>, tag| Observation {
        at: UnixMillis(at),
        agent: None,
        spot: Spot::NOWHERE,
        is_implicit: true,
        source: Source::Server,
        network: network.map(NetworkHash),
        language: Language::of_tag(tag),
    };
    let of = |scans: &[Observation]| {
        let profile = Profile::of(scans);
        profile.sessions().map(|(_, one)| (one.network.map(|one| one.0), one.language)).collect::<Vec<_>>()
    };
    let language = Language::of_tag("de");
    assert_eq!(of(&[seen(1, Some(9), "it"), seen(2, Some(3), "de")]), [(Some(3), language)]);
    assert_eq!(of(&[seen(1, None, ""), seen(2, Some(3), "de")]), [(Some(3), language)]);
    assert_eq!(of(&[seen(1, None, "")]), [(None, None)]);
}

/// Rows of releases that know neither networks nor languages, before an upgrade and beside one.
#[test]
fn profiles_of_the_release_before_are_read() {
    let seen = |at| Observation {
        at: UnixMillis(at),
        agent: Some(AgentHash(1)),
        spot: Spot::NOWHERE,
        is_implicit: true,
        source: Source::Edge,
        network: Some(NetworkHash(7)),
        language: Language::of_tag("de"),
    };
    let (one, two) = (Profile::of(&[seen(1)]), Profile::of(&[seen(1), seen(SESSION_MS)]));
    // The only session: 1 ms after the epoch, by device 1, one redirect, nowhere.
    let stored = [&[1, 0, 1, 0][..], &1_u64.to_be_bytes(), &[2, 0, 0, 1], &[0, 0, 0, 0]].concat();
    assert_eq!(one.to_bytes(), stored, "sessions are stored as before");
    let without = Profile::from_bytes(&stored, b"", b"").unwrap();
    assert!(without.sessions().all(|(_, one)| one.network.is_none() && one.language.is_none()));
    let changed = Profile::from_bytes(&two.to_bytes(), b"", &one.clients_to_bytes()).unwrap();
    assert!(changed.len() == 2 && changed.sessions().all(|(_, one)| one.network.is_none()));
}

#[test]
fn of_public_scans_no_network_or_language_is_kept() {
    let seen = Observation {
        at: UnixMillis(1),
        agent: Some(AgentHash(1)),
        spot: Spot::NOWHERE,
        is_implicit: false,
        source: Source::Public,
        network: Some(NetworkHash(7)),
        language: Language::of_tag("de"),
    };
    let profile = Profile::of(&[seen]);
    assert!(profile.clients_to_bytes().is_empty());
    assert!(profile.with_unverified().sessions().all(|(_, one)| one.network.is_none()));
}
