//! Dimensions of scans, and the sets of them that are counted.

use std::fmt::Write;

shared::words! {
    /// What scans can be grouped and filtered by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Dimension {
        /// ISO 3166-1 alpha-2, from the client's address.
        Country = "country",
        /// The first subdivision of the country.
        Region = "region",
        /// The city: personal data, as in actions.
        City = "city",
        /// The operating system.
        System = "system",
        /// `phone`, `tablet`, `desktop` or `other`.
        Device = "device",
        /// The preferred language, without its region.
        Language = "language",
        /// `authenticationStatus` of the Thng when the scan was counted.
        Verdict = "verdict",
        /// Projects that the link is scoped to.
        Project = "project",
        /// The product.
        Product = "product",
        /// The short URL without its scheme.
        Link = "link",
        /// The GTIN of a Digital Link.
        Gtin = "gtin",
        /// The lot of a Digital Link, where the product has links for it.
        Lot = "lot",
    } else ()
}

/// A set of dimensions by which scans are counted.
#[derive(Debug, PartialEq, Eq)]
pub struct Series {
    /// Its number in the tables.
    pub number: i16,
    /// The dimension in the column `value`.
    pub first: Option<Dimension>,
    /// The dimension in the column `second`.
    pub second: Option<Dimension>,
}

const fn series(number: i16, first: Option<Dimension>, second: Option<Dimension>) -> Series {
    Series { number, first, second }
}

/// The sets that are counted. A number is never used for another set.
pub const SERIES: &[Series] = &[
    series(1, None, None),
    series(2, Some(Dimension::Country), None),
    series(3, Some(Dimension::Country), Some(Dimension::Region)),
    series(4, Some(Dimension::Country), Some(Dimension::City)),
    series(5, Some(Dimension::System), None),
    series(6, Some(Dimension::Device), None),
    series(7, Some(Dimension::Language), None),
    series(8, Some(Dimension::Verdict), None),
    series(9, Some(Dimension::Project), None),
    series(20, Some(Dimension::Product), None),
    series(21, Some(Dimension::Product), Some(Dimension::Country)),
    series(22, Some(Dimension::Product), Some(Dimension::Device)),
    series(23, Some(Dimension::Product), Some(Dimension::Verdict)),
    series(24, Some(Dimension::Link), None),
    series(25, Some(Dimension::Gtin), None),
    series(26, Some(Dimension::Gtin), Some(Dimension::Lot)),
];

impl Series {
    /// Whether it is counted by the day of UTC only. Most links are scanned once or twice: rows by the hour would be as
    /// many as the scans.
    #[must_use]
    pub fn is_daily(&self) -> bool {
        self.first == Some(Dimension::Link)
    }

    /// The set that has exactly these dimensions; regions and cities are counted within their country, lots within their GTIN.
    #[must_use]
    pub fn find(mut wanted: Vec<Dimension>) -> Option<&'static Self> {
        if wanted.iter().any(|one| matches!(one, Dimension::Region | Dimension::City)) {
            wanted.push(Dimension::Country);
        }
        if wanted.contains(&Dimension::Lot) {
            wanted.push(Dimension::Gtin);
        }
        wanted.sort_unstable();
        wanted.dedup();
        SERIES.iter().find(|series| {
            let mut own: Vec<Dimension> = series.first.into_iter().chain(series.second).collect();
            own.sort_unstable();
            own == wanted
        })
    }

    /// The sets as a text, for whoever asked for another one.
    #[must_use]
    pub fn list() -> String {
        let mut text = String::new();
        for Self { first, second, .. } in SERIES {
            let Some(first) = first else { continue };
            let separator = if text.is_empty() { "" } else { "; " };
            // Writing to a string cannot fail.
            let _ = match second {
                None => write!(text, "{separator}{}", first.as_str()),
                Some(second) => write!(text, "{separator}{}, {}", first.as_str(), second.as_str()),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Dimension::*, *};

    #[test]
    fn a_set_is_found_in_any_order_and_no_other_one() {
        for (wanted, expected) in [
            (vec![], Some(1)),
            (vec![Country], Some(2)),
            (vec![Region], Some(3)),
            (vec![Region, Country], Some(3)),
            (vec![City, Country, Country], Some(4)),
            (vec![Country, Product], Some(21)),
            (vec![Product, Country], Some(21)),
            (vec![Link], Some(24)),
            (vec![Gtin], Some(25)),
            (vec![Lot], Some(26)),
            (vec![Lot, Gtin], Some(26)),
            (vec![Country, Language], None),
            (vec![Region, City], None),
            (vec![Product, Region], None),
            (vec![Link, Country], None),
            (vec![Product, Country, Device], None),
        ] {
            let found = Series::find(wanted.clone()).map(|series| series.number);
            assert_eq!(found, expected, "{wanted:?}");
        }
        assert!(Series::list().contains("; product, country; "), "{}", Series::list());
    }

    #[test]
    fn numbers_are_used_once_and_names_are_read_back() {
        let mut numbers: Vec<i16> = SERIES.iter().map(|series| series.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), SERIES.len());
        for dimension in Dimension::ALL {
            assert_eq!(dimension.as_str().parse(), Ok(dimension));
        }
        // Links are removed after a time by their number (`store/scan_statistics.rs`).
        let daily: Vec<i16> = SERIES.iter().filter(|one| one.is_daily()).map(|one| one.number).collect();
        assert_eq!(daily, [24]);
    }
}
