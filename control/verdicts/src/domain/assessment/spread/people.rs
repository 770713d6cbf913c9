//! Whom the sessions tell apart, by device, language and network.

use std::collections::{BTreeMap, BTreeSet};

use shared::time::UnixMillis;

use super::known;
use crate::domain::assessment::{
    agent::AgentHash,
    client::{Language, NetworkHash},
};

/// One day in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// People and days of some sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct People {
    /// Languages.
    pub languages: BTreeSet<Language>,
    /// Groups of sessions of which no two share a network, or a device and its language: so many people had it at least,
    /// but for those who changed both.
    pub unlinked: usize,
    /// Days, of UTC, on which sessions began.
    pub days: usize,
    /// Whether the language of at least half of the sessions is known. If not, the other figures say too little.
    pub is_known: bool,
}

/// What a session shows of the person.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub at: UnixMillis,
    pub agent: AgentHash,
    pub network: Option<NetworkHash>,
    pub language: Option<Language>,
}

/// What two sessions of one person share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trait {
    Network(NetworkHash),
    Device(AgentHash, Option<Language>),
}

impl People {
    pub(super) fn of(sessions: &[Seen]) -> Self {
        let languages: BTreeSet<Language> = sessions.iter().filter_map(|seen| seen.language).collect();
        let days: BTreeSet<i64> = sessions.iter().map(|seen| seen.at.0.div_euclid(DAY_MS)).collect();
        let told = sessions.iter().filter(|seen| seen.language.is_some()).count();
        Self {
            languages,
            unlinked: unlinked(sessions),
            days: days.len(),
            is_known: told * 2 >= sessions.len(),
        }
    }
}

fn unlinked(sessions: &[Seen]) -> usize {
    // A session whose language is not known is of the phone with that device and the first language.
    let mut spoken: BTreeMap<AgentHash, Language> = BTreeMap::new();
    for seen in sessions {
        if let Some(language) = seen.language {
            let first = spoken.entry(seen.agent).or_insert(language);
            *first = language.min(*first);
        }
    }
    let traits = |seen: &Seen| {
        let language = seen.language.or_else(|| spoken.get(&seen.agent).copied());
        let device = known(seen.agent).map(|agent| Trait::Device(agent, language));
        [seen.network.map(Trait::Network), device]
    };
    // Groups that a session links become one.
    let mut groups: Vec<BTreeSet<Trait>> = Vec::new();
    for seen in sessions {
        let mut group: BTreeSet<Trait> = traits(seen).into_iter().flatten().collect();
        if group.is_empty() {
            continue;
        }
        groups.retain_mut(|other| {
            let is_apart = other.is_disjoint(&group);
            if !is_apart {
                group.append(other);
            }
            is_apart
        });
        groups.push(group);
    }
    groups.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Day, device, network, language; 0 and nothing are unknown.
    fn seen((day, agent, network, language): (i64, u64, u16, &str)) -> Seen {
        Seen {
            at: UnixMillis(day * DAY_MS + 5),
            agent: AgentHash(agent),
            network: Some(NetworkHash(network)).filter(|one| one.0 > 0),
            language: Language::of_tag(language),
        }
    }

    #[test]
    fn people_are_told_apart_by_device_and_language_and_by_network() {
        for (sessions, expected, what) in [
            (&[][..], 0, "nobody"),
            (
                &[(0, 1, 1, "de"), (1, 1, 2, "de"), (9, 1, 3, "de")][..],
                1,
                "an owner at home, at work, on the way",
            ),
            (&[(0, 1, 1, "de"), (1, 2, 1, "de"), (2, 2, 5, "de")], 1, "a family with one line"),
            (&[(0, 1, 1, "de"), (1, 2, 2, "de")], 2, "two phones"),
            (&[(0, 1, 1, "de"), (1, 1, 2, "fr")], 2, "two phones that look alike"),
            (&[(0, 1, 1, "de"), (1, 2, 2, "fr"), (2, 2, 1, "fr")], 1, "who met in one network"),
            (&[(0, 1, 1, "de"), (1, 2, 2, "fr"), (2, 3, 3, "it"), (3, 3, 1, "it")], 2, "linked by the last"),
            (&[(0, 1, 1, "de"), (1, 1, 2, ""), (2, 1, 3, "en")], 2, "a language that was not sent"),
            (&[(0, 0, 1, "de"), (1, 0, 1, "fr"), (2, 0, 0, "it")], 1, "devices that are not known"),
        ] {
            let mut sessions: Vec<Seen> = sessions.iter().copied().map(seen).collect();
            for _ in 0..=sessions.len() {
                assert_eq!(People::of(&sessions).unlinked, expected, "{what}");
                let by = usize::from(!sessions.is_empty());
                sessions.rotate_left(by);
            }
        }
    }

    #[test]
    fn days_and_languages_are_counted_and_half_of_them_must_be_known() {
        let of = |sessions: &[(i64, u64, u16, &str)]| {
            People::of(&sessions.iter().copied().map(seen).collect::<Vec<_>>())
        };
        let found = of(&[(0, 1, 1, "de-CH"), (0, 1, 1, "de"), (3, 2, 2, "fr"), (-1, 3, 3, "")]);
        assert_eq!((found.languages.len(), found.days, found.is_known), (2, 3, true));
        assert!(of(&[(0, 1, 1, "de"), (1, 1, 1, "")]).is_known);
        assert!(!of(&[(0, 1, 1, "de"), (1, 1, 1, ""), (2, 1, 1, "")]).is_known);
    }
}
