//! Attackers who want a genuine item to look copied, or a copied one to look genuine: what each can still achieve.

use std::{collections::BTreeMap, fmt};

use shared::{
    standing::{Authenticity, Risk, Verdict},
    time::UnixMillis,
};
use verdicts::domain::{
    assessment::{
        agent::AgentHash,
        client::{Language, NetworkHash},
        profile::{Observation, Profile},
        settings::Settings,
        spot::Spot,
    },
    scan_source::Source,
};

use super::{
    Case, Kind, assessed,
    assumptions::Figures,
    atlas::COUNTRIES,
    items::{self, HOUR},
    people::{Rng, Town},
};

/// Items that attackers are let loose on where figures are published (`SECURITY.md`).
pub const ATTACKED: usize = 1_000;

/// Somebody who attacks the verdict on an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attacker {
    /// 30 back-dated scans with chosen places and devices by an application's key, from one address.
    PublicKey,
    /// As many by the key of the item itself.
    ThngKey,
    /// 200 addresses around the world, each with a scan by a public key.
    BotnetWithKeys,
    /// The same addresses, each asking for an assessment itself by a public key.
    BotnetThatAsks,
    /// The same addresses, each opening the short URL: what an edge sees is believed.
    BotnetAtTheEdge,
}

impl Attacker {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::PublicKey, Self::ThngKey, Self::BotnetWithKeys, Self::BotnetThatAsks, Self::BotnetAtTheEdge];

    /// What he has, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PublicKey => "the key of an application, 30 scans from one address",
            Self::ThngKey => "the key of the Thng itself, 30 scans from one address",
            Self::BotnetWithKeys => "200 addresses, each a scan by a public key",
            Self::BotnetThatAsks => "200 addresses, each asks for an assessment by a public key",
            Self::BotnetAtTheEdge => "200 addresses, each opens the short URL at the edge",
        }
    }

    /// Whether all that he does is by keys that anybody can get.
    #[must_use]
    pub const fn is_public(self) -> bool {
        !matches!(self, Self::BotnetAtTheEdge)
    }

    /// What the service sees of him before a time.
    fn scans(self, rng: &mut Rng, until: UnixMillis) -> Vec<Observation> {
        let (count, networks) = match self {
            Self::PublicKey | Self::ThngKey => (30, 1),
            Self::BotnetWithKeys | Self::BotnetThatAsks | Self::BotnetAtTheEdge => (200, 200),
        };
        let mut scan = |n: u64| {
            let country = rng.pick(COUNTRIES);
            let town = Town::of(rng, country);
            let code = Some(country.code);
            let ago = HOUR + (rng.unit() * (24 * HOUR) as f64) as i64;
            let at = UnixMillis((until.0 - ago).max(0));
            // Networks have numbers that no device of the simulation has.
            let network = Some(AgentHash(1_000_000 + n % networks));
            if self.is_public() {
                // Claimed places, times and devices are nothing that the server saw.
                let spot = Spot::of_address(false, None, code, None);
                return Observation {
                    at,
                    agent: network,
                    spot,
                    is_implicit: false,
                    source: Source::Public,
                    network: Some(NetworkHash((n % networks) as u16)),
                    language: None,
                };
            }
            let spot = super::people::by_address(rng, town, &Figures::PLAIN);
            // He chooses the languages as he likes: those of the countries that he seems to be in.
            Observation {
                at,
                agent: network,
                spot,
                is_implicit: true,
                source: Source::Edge,
                network: Some(NetworkHash((n % networks) as u16)),
                language: Language::of_tag(country.code),
            }
        };
        (0..count).map(&mut scan).collect()
    }
}

/// What an attacker did to many items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attack {
    /// Who.
    pub attacker: Attacker,
    /// Genuine items that were positive before, and what they are after.
    pub genuine: BTreeMap<&'static str, usize>,
    /// Genuine items of which any status became worse than before, and worse than unknown.
    pub incriminated: usize,
    /// Copied items that were suspected before, and of which a status became better.
    pub cleared: usize,
    /// Copied items that were suspected before.
    pub copied: usize,
}

/// Lets each attacker loose on `count` items.
#[must_use]
pub fn attack(seed: u64, count: usize) -> Vec<Attack> {
    let settings = Settings::default();
    let mut rng = Rng::new(seed);
    let cases: Vec<Case> = (0..count).map(|_| items::case(&mut rng, &Figures::PLAIN)).collect();
    let one = |attacker: Attacker| {
        let mut rng = Rng::new(seed ^ 1);
        let mut found = Attack { attacker, genuine: BTreeMap::new(), incriminated: 0, cleared: 0, copied: 0 };
        for case in &cases {
            let Some((last, before)) = case.scans.split_last() else { continue };
            let was = assessed(case, last, &Profile::of(before), &settings).verdict;
            let scans = attacker.scans(&mut rng, last.at);
            let profile = Profile::of(before.iter().chain(&scans));
            let mut after = vec![assessed(case, last, &profile, &settings).verdict];
            if attacker == Attacker::BotnetThatAsks {
                after.extend(
                    scans.iter().take(20).map(|scan| assessed(case, scan, &profile, &settings).verdict),
                );
            }
            found.count(case.kind, was, &after);
        }
        found
    };
    Attacker::ALL.into_iter().map(one).collect()
}

impl Attack {
    /// The figures as a row of the table in `SECURITY.md`.
    #[must_use]
    pub fn row(&self) -> String {
        let of = |status: &str| self.genuine.get(status).copied().unwrap_or_default();
        let statuses =
            ["positive", "unknown", "suspicious", "negative"].map(of).map(|count| count.to_string());
        let Self { attacker, incriminated, cleared, copied, .. } = self;
        format!("| {} | {} | {incriminated} | {cleared} of {copied} |", attacker.name(), statuses.join(" | "))
    }

    fn count(&mut self, kind: Kind, was: Verdict, after: &[Verdict]) {
        match kind {
            Kind::Genuine if was.authentication == Authenticity::Positive => {
                let worst = after.iter().map(|one| one.authentication).max();
                *self.genuine.entry(worst.map_or("none", Authenticity::as_str)).or_default() += 1;
                self.incriminated += usize::from(after.iter().any(|one| is_beyond_unknown(*one)));
            }
            Kind::Copied if was.counterfeit >= Risk::Suspected => {
                self.copied += 1;
                // The others were asked about earlier scans.
                self.cleared +=
                    usize::from(after.first().is_some_and(|one| one.counterfeit < was.counterfeit));
            }
            Kind::Genuine | Kind::Copied | Kind::Diverted => {}
        }
    }
}

fn is_beyond_unknown(verdict: Verdict) -> bool {
    verdict.authentication > Authenticity::Unknown
        || verdict.counterfeit > Risk::Unknown
        || verdict.gray_market > Risk::Unknown
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.genuine.values().sum();
        write!(f, "  {:<58} of {all} genuine items:", self.attacker.name())?;
        for (status, count) in &self.genuine {
            write!(f, " {count} {status}")?;
        }
        let Self { incriminated, cleared, copied, .. } = self;
        write!(f, "; beyond unknown {incriminated}; of {copied} suspected copies, cleared {cleared}")
    }
}
