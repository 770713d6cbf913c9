//! The world of the demo: an invented brand, its products and markets, cities where people scan, and their phones.

/// Name of the brand; nobody else's.
pub(super) const BRAND: &str = "Tarnelle";

/// A city, some way from any border, so that its country is not in doubt.
#[derive(Debug, PartialEq)]
pub(super) struct City {
    pub(super) name: &'static str,
    /// ISO 3166-1 alpha-2.
    pub(super) country: &'static str,
    /// What phones there are set to.
    pub(super) language: &'static str,
    /// Degrees.
    pub(super) latitude: f64,
    /// Degrees.
    pub(super) longitude: f64,
}

const fn city(
    name: &'static str,
    country: &'static str,
    language: &'static str,
    latitude: f64,
    longitude: f64,
) -> City {
    City { name, country, language, latitude, longitude }
}

/// All of them.
pub(super) static CITIES: [City; 30] = [
    city("Berlin", "DE", "de-DE", 52.52, 13.40),
    city("Munich", "DE", "de-DE", 48.14, 11.58),
    city("Hanover", "DE", "de-DE", 52.37, 9.73),
    city("Paris", "FR", "fr-FR", 48.86, 2.35),
    city("Lyon", "FR", "fr-FR", 45.76, 4.84),
    city("Bologna", "IT", "it-IT", 44.49, 11.34),
    city("Madrid", "ES", "es-ES", 40.42, -3.70),
    city("Warsaw", "PL", "pl-PL", 52.23, 21.01),
    city("Utrecht", "NL", "nl-NL", 52.09, 5.12),
    city("Graz", "AT", "de-AT", 47.07, 15.44),
    city("Prague", "CZ", "cs-CZ", 50.08, 14.44),
    city("Birmingham", "GB", "en-GB", 52.48, -1.90),
    city("Atlanta", "US", "en-US", 33.75, -84.39),
    city("Denver", "US", "en-US", 39.74, -104.99),
    city("Dallas", "US", "en-US", 32.78, -96.80),
    city("Calgary", "CA", "en-CA", 51.05, -114.07),
    city("Puebla", "MX", "es-MX", 19.04, -98.21),
    city("Kyoto", "JP", "ja-JP", 35.01, 135.77),
    city("Nagano", "JP", "ja-JP", 36.65, 138.18),
    city("Daejeon", "KR", "ko-KR", 36.35, 127.38),
    city("Bengaluru", "IN", "en-IN", 12.97, 77.59),
    city("Nagpur", "IN", "en-IN", 21.15, 79.09),
    city("Belo Horizonte", "BR", "pt-BR", -19.92, -43.94),
    city("Brasilia", "BR", "pt-BR", -15.79, -47.88),
    city("Cordoba", "AR", "es-AR", -31.42, -64.18),
    city("Johannesburg", "ZA", "en-ZA", -26.20, 28.05),
    city("Nairobi", "KE", "en-KE", -1.29, 36.82),
    city("Ankara", "TR", "tr-TR", 39.93, 32.86),
    city("Riyadh", "SA", "ar-SA", 24.71, 46.68),
    city("Canberra", "AU", "en-AU", -35.28, 149.13),
];

const EUROPE: &[&str] = &["DE", "FR", "IT", "ES", "PL", "NL", "AT", "CZ", "GB"];
const AMERICA: &[&str] = &["US", "CA", "MX"];
const ASIA: &[&str] = &["JP", "KR", "IN"];

/// A product and where it may be sold.
pub(super) struct Product {
    pub(super) name: &'static str,
    pub(super) category: &'static str,
    /// Its markets.
    pub(super) countries: &'static [&'static str],
}

impl Product {
    /// Whether it may be sold in a city.
    pub(super) fn is_sold_in(&self, city: &City) -> bool {
        self.countries.contains(&city.country)
    }
}

/// All of them.
pub(super) static PRODUCTS: [Product; 6] = [
    Product { name: "Trail jacket", category: "outdoor", countries: EUROPE },
    Product { name: "City backpack", category: "bags", countries: EUROPE },
    Product { name: "Merino scarf", category: "knitwear", countries: EUROPE },
    Product { name: "Canvas shoe", category: "shoes", countries: AMERICA },
    Product { name: "Field watch", category: "watches", countries: AMERICA },
    Product { name: "Travel wallet", category: "leather goods", countries: ASIA },
];

/// Where items are made; the name of a factory is its identifier, too.
pub(super) struct Factory {
    pub(super) name: &'static str,
    /// `identifiers.factory` of the place.
    pub(super) factory: &'static str,
    /// Degrees.
    pub(super) latitude: f64,
    /// Degrees.
    pub(super) longitude: f64,
}

/// All of them.
pub(super) static FACTORIES: [Factory; 2] = [
    Factory { name: "Plant north", factory: "DEMO-NORTH", latitude: 41.15, longitude: -8.30 },
    Factory { name: "Plant east", factory: "DEMO-EAST", latitude: 21.20, longitude: 105.60 },
];

/// Names of phones that nobody makes; each is a device of its own.
pub(super) static DEVICES: [&str; 24] = [
    "Kestrel",
    "Heron",
    "Plover",
    "Wren",
    "Osprey",
    "Linnet",
    "Curlew",
    "Dunlin",
    "Egret",
    "Finch",
    "Gannet",
    "Hobby",
    "Ibis",
    "Jackdaw",
    "Knot",
    "Lapwing",
    "Merlin",
    "Nuthatch",
    "Oriole",
    "Pipit",
    "Quail",
    "Raven",
    "Siskin",
    "Turnstone",
];

/// What the browser of a phone sends.
pub(super) fn user_agent(device: &str) -> String {
    format!(
        "Mozilla/5.0 (Linux; Android 14; {device}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 \
         Mobile Safari/537.36"
    )
}

/// The GTIN of a product of a seed: 14 digits, of which the first ones are kept for examples by those who give GTINs out.
pub(super) fn gtin(tag: u16, product: usize) -> String {
    let body = format!("0952{:04}{:05}", tag % 10_000, product + 1);
    let weighted = body.bytes().zip([3, 1].into_iter().cycle());
    let sum: u32 = weighted.map(|(digit, weight)| u32::from(digit - b'0') * weight).sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shared::gtin::is_valid;

    use super::*;

    #[test]
    fn every_product_has_cities_inside_and_outside_of_its_markets() {
        for product in &PRODUCTS {
            let inside = CITIES.iter().filter(|city| product.is_sold_in(city)).count();
            assert!(inside >= 3 && CITIES.len() - inside >= 5, "{}: {inside}", product.name);
            for country in product.countries {
                assert!(CITIES.iter().any(|city| city.country == *country), "nobody scans in {country}");
            }
        }
        assert_eq!(DEVICES.iter().collect::<BTreeSet<_>>().len(), DEVICES.len());
    }

    #[test]
    fn gtins_have_a_check_digit_and_differ() {
        let all: BTreeSet<String> = (0..6).map(|n| gtin(65_535, n)).collect();
        assert_eq!(all.len(), 6);
        for one in all {
            assert!(one.len() == 14 && is_valid(&one), "{one}");
        }
    }
}
