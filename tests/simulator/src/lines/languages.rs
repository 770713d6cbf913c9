//! Which languages phones are set to, by country.
//!
//! No public source counts the languages of phones: the shares are those of what people speak at home, with English
//! added where it is a second language of many.

use super::{
    super::{atlas::Country, people::Rng},
    Shares,
};

/// Languages with weights.
type Weights = &'static [(&'static str, f64)];

/// A country, the share of its people born abroad in per cent, and the languages of the others with weights.
///
/// Born abroad: UN DESA, "International Migrant Stock" (2020), rounded. Languages: censuses and surveys of the main
/// language: Switzerland (FSO, 2022: German 62 %, French 23 %, Italian 8 %), Canada (Statistics Canada, 2021: French
/// at home 20 %), the United States (Census Bureau, 2019: Spanish 13 %), Singapore (census of 2020: English 48 %,
/// Mandarin 30 %, Malay 9 %), Spain (Catalan in 9 %: assumed from Idescat, 2018, as few set their phone to it). India,
/// Nigeria and South Africa: assumed mostly English, which phones are sold with. The Emirates: citizens only.
const COUNTRIES: &[(&str, f64, Weights)] = &[
    ("DE", 19.0, &[("de", 1.0)]),
    ("FR", 13.0, &[("fr", 1.0)]),
    ("GB", 14.0, &[("en", 1.0)]),
    ("IT", 11.0, &[("it", 1.0)]),
    ("ES", 15.0, &[("es", 94.0), ("ca", 6.0)]),
    ("PL", 2.0, &[("pl", 1.0)]),
    ("NL", 14.0, &[("nl", 1.0)]),
    ("CH", 29.0, &[("de", 65.0), ("fr", 24.0), ("it", 8.0)]),
    ("SE", 20.0, &[("sv", 1.0)]),
    ("TR", 7.0, &[("tr", 1.0)]),
    ("US", 15.0, &[("en", 93.0), ("es", 7.0)]),
    ("CA", 21.0, &[("en", 78.0), ("fr", 22.0)]),
    ("MX", 1.0, &[("es", 1.0)]),
    ("BR", 1.0, &[("pt", 1.0)]),
    ("CN", 0.1, &[("zh", 1.0)]),
    ("JP", 2.0, &[("ja", 1.0)]),
    ("KR", 3.0, &[("ko", 1.0)]),
    ("SG", 43.0, &[("en", 65.0), ("zh", 30.0), ("ms", 5.0)]),
    ("AU", 30.0, &[("en", 1.0)]),
    ("IN", 0.4, &[("en", 75.0), ("hi", 20.0), ("bn", 5.0)]),
    ("AE", 88.0, &[("ar", 1.0)]),
    ("SA", 39.0, &[("ar", 1.0)]),
    ("NG", 0.6, &[("en", 1.0)]),
    ("ZA", 5.0, &[("en", 95.0), ("af", 5.0)]),
];

/// Languages that migrants bring, by how many there are.
///
/// Assumed after the largest countries of origin (UN DESA, 2020: India, Mexico, Russia, China, Syria, Bangladesh,
/// Pakistan, Ukraine, the Philippines, Poland).
const BROUGHT: Weights = &[
    ("en", 22.0),
    ("es", 14.0),
    ("ar", 14.0),
    ("ru", 9.0),
    ("zh", 8.0),
    ("uk", 5.0),
    ("pl", 5.0),
    ("ro", 5.0),
    ("fr", 5.0),
    ("hi", 4.0),
    ("pt", 4.0),
    ("tr", 4.0),
    ("it", 2.0),
    ("de", 2.0),
];

/// The tag of the language that the phone of somebody in a country is set to.
pub(super) fn spoken(rng: &mut Rng, shares: Shares, country: &Country) -> &'static str {
    let known = COUNTRIES.iter().find(|(code, _, _)| *code == country.code);
    let (_, abroad, languages) = known.unwrap_or(&COUNTRIES[0]);
    if rng.chance(abroad / 100.0 * shares.kept_language) {
        return weighted(rng, BROUGHT);
    }
    if rng.chance(shares.english) { "en" } else { weighted(rng, languages) }
}

fn weighted(rng: &mut Rng, all: Weights) -> &'static str {
    let mut left = rng.unit() * all.iter().map(|(_, weight)| weight).sum::<f64>();
    let found = all.iter().find(|(_, weight)| {
        left -= weight;
        left < 0.0
    });
    found.map_or(all[0].0, |(language, _)| language)
}

#[cfg(test)]
mod tests {
    use super::{super::super::atlas, *};

    #[test]
    fn every_country_of_the_atlas_has_languages() {
        for country in atlas::COUNTRIES {
            assert!(COUNTRIES.iter().any(|(code, _, _)| *code == country.code), "{}", country.code);
        }
    }
}
