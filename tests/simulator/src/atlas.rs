//! Countries and cities of the simulation.
//!
//! Shares of iPhones among phones are those that StatCounter's pages of 2025 give, rounded to 5 %; weights are
//! guesses of how many of a brand's customers live in a country, and only their order matters.

/// Countries that lie near to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Area {
    Europe,
    America,
    East,
    South,
}

/// A city with its region, and its point.
#[derive(Debug)]
pub(super) struct City {
    pub region: &'static str,
    pub latitude: f64,
    pub longitude: f64,
}

/// A country; the first of its cities is where its carriers have their gateway.
#[derive(Debug)]
pub(super) struct Country {
    pub code: &'static str,
    pub area: Area,
    pub iphones: f64,
    pub weight: f64,
    pub cities: &'static [City],
}

const fn city(region: &'static str, latitude: f64, longitude: f64) -> City {
    City { region, latitude, longitude }
}

const fn country(
    code: &'static str,
    area: Area,
    iphones: f64,
    weight: f64,
    cities: &'static [City],
) -> Country {
    Country { code, area, iphones, weight, cities }
}

use Area::{America, East, Europe, South};

pub(super) const COUNTRIES: &[Country] = &[
    country(
        "DE",
        Europe,
        0.40,
        8.0,
        &[
            city("Hesse", 50.11, 8.68),
            city("Berlin", 52.52, 13.40),
            city("Hamburg", 53.55, 9.99),
            city("Bavaria", 48.14, 11.58),
            city("North Rhine-Westphalia", 50.94, 6.96),
            city("Baden-Württemberg", 48.78, 9.18),
            city("Saxony", 51.34, 12.37),
            city("Lower Saxony", 52.37, 9.73),
        ],
    ),
    country(
        "FR",
        Europe,
        0.35,
        7.0,
        &[
            city("Ile-de-France", 48.86, 2.35),
            city("Provence", 43.30, 5.37),
            city("Rhone", 45.76, 4.84),
            city("Occitania", 43.60, 1.44),
            city("Nord", 50.63, 3.06),
            city("Grand Est", 48.58, 7.75),
        ],
    ),
    country(
        "GB",
        Europe,
        0.50,
        7.0,
        &[
            city("London", 51.51, -0.13),
            city("Greater Manchester", 53.48, -2.24),
            city("Scotland", 55.95, -3.19),
            city("West Midlands", 52.48, -1.89),
            city("Bristol", 51.45, -2.59),
        ],
    ),
    country(
        "IT",
        Europe,
        0.30,
        6.0,
        &[
            city("Lombardy", 45.46, 9.19),
            city("Lazio", 41.90, 12.50),
            city("Campania", 40.85, 14.27),
            city("Piedmont", 45.07, 7.69),
            city("Sicily", 38.12, 13.36),
        ],
    ),
    country(
        "ES",
        Europe,
        0.25,
        5.0,
        &[
            city("Madrid", 40.42, -3.70),
            city("Catalonia", 41.39, 2.17),
            city("Andalusia", 37.39, -5.98),
            city("Valencia", 39.47, -0.38),
        ],
    ),
    country(
        "PL",
        Europe,
        0.15,
        3.0,
        &[
            city("Mazovia", 52.23, 21.01),
            city("Lesser Poland", 50.06, 19.94),
            city("Pomerania", 54.35, 18.65),
            city("Lower Silesia", 51.11, 17.04),
        ],
    ),
    country(
        "NL",
        Europe,
        0.45,
        3.0,
        &[
            city("North Holland", 52.37, 4.90),
            city("South Holland", 51.92, 4.48),
            city("North Brabant", 51.44, 5.47),
        ],
    ),
    country(
        "CH",
        Europe,
        0.55,
        3.0,
        &[city("Zürich", 47.37, 8.54), city("Bern", 46.95, 7.45), city("Geneva", 46.20, 6.14)],
    ),
    country(
        "SE",
        Europe,
        0.55,
        2.0,
        &[
            city("Stockholm", 59.33, 18.07),
            city("Västra Götaland", 57.71, 11.97),
            city("Skåne", 55.60, 13.00),
        ],
    ),
    country(
        "TR",
        Europe,
        0.15,
        3.0,
        &[city("Istanbul", 41.01, 28.98), city("Ankara", 39.93, 32.86), city("Izmir", 38.42, 27.14)],
    ),
    country(
        "US",
        America,
        0.60,
        20.0,
        &[
            city("New York", 40.71, -74.01),
            city("California", 34.05, -118.24),
            city("Illinois", 41.88, -87.63),
            city("Texas", 32.78, -96.80),
            city("Florida", 25.76, -80.19),
            city("Georgia", 33.75, -84.39),
            city("Washington", 47.61, -122.33),
            city("Colorado", 39.74, -104.99),
            city("Massachusetts", 42.36, -71.06),
        ],
    ),
    country(
        "CA",
        America,
        0.60,
        3.0,
        &[
            city("Ontario", 43.65, -79.38),
            city("Quebec", 45.50, -73.57),
            city("British Columbia", 49.28, -123.12),
            city("Alberta", 51.05, -114.07),
        ],
    ),
    country(
        "MX",
        America,
        0.25,
        3.0,
        &[
            city("Mexico City", 19.43, -99.13),
            city("Jalisco", 20.67, -103.35),
            city("Nuevo León", 25.69, -100.32),
        ],
    ),
    country(
        "BR",
        America,
        0.20,
        4.0,
        &[
            city("São Paulo", -23.55, -46.63),
            city("Rio de Janeiro", -22.91, -43.17),
            city("Federal District", -15.79, -47.88),
            city("Bahia", -12.97, -38.50),
            city("Rio Grande do Sul", -30.03, -51.23),
        ],
    ),
    country(
        "CN",
        East,
        0.25,
        15.0,
        &[
            city("Beijing", 39.90, 116.41),
            city("Shanghai", 31.23, 121.47),
            city("Guangdong", 23.13, 113.26),
            city("Sichuan", 30.57, 104.07),
            city("Hubei", 30.59, 114.31),
            city("Shaanxi", 34.34, 108.94),
            city("Zhejiang", 30.27, 120.16),
        ],
    ),
    country(
        "JP",
        East,
        0.65,
        8.0,
        &[
            city("Tokyo", 35.68, 139.69),
            city("Osaka", 34.69, 135.50),
            city("Aichi", 35.18, 136.91),
            city("Fukuoka", 33.59, 130.40),
            city("Hokkaido", 43.06, 141.35),
        ],
    ),
    country(
        "KR",
        East,
        0.25,
        4.0,
        &[city("Seoul", 37.57, 126.98), city("Busan", 35.18, 129.08), city("Daegu", 35.87, 128.60)],
    ),
    country("SG", East, 0.35, 1.0, &[city("Singapore", 1.35, 103.82)]),
    country(
        "AU",
        East,
        0.55,
        3.0,
        &[
            city("New South Wales", -33.87, 151.21),
            city("Victoria", -37.81, 144.96),
            city("Queensland", -27.47, 153.03),
            city("Western Australia", -31.95, 115.86),
        ],
    ),
    country(
        "IN",
        South,
        0.05,
        5.0,
        &[
            city("Maharashtra", 19.08, 72.88),
            city("Delhi", 28.61, 77.21),
            city("Karnataka", 12.97, 77.59),
            city("Tamil Nadu", 13.08, 80.27),
            city("West Bengal", 22.57, 88.36),
        ],
    ),
    country("AE", South, 0.30, 2.0, &[city("Dubai", 25.20, 55.27), city("Abu Dhabi", 24.45, 54.38)]),
    country(
        "SA",
        South,
        0.35,
        2.0,
        &[city("Riyadh", 24.71, 46.68), city("Makkah", 21.49, 39.19), city("Eastern", 26.43, 50.10)],
    ),
    country(
        "NG",
        South,
        0.10,
        2.0,
        &[city("Lagos", 6.52, 3.38), city("Abuja", 9.06, 7.49), city("Kano", 12.00, 8.52)],
    ),
    country(
        "ZA",
        South,
        0.15,
        2.0,
        &[
            city("Gauteng", -26.20, 28.05),
            city("Western Cape", -33.92, 18.42),
            city("KwaZulu-Natal", -29.86, 31.02),
        ],
    ),
];
