//! Which pages the links of a product lead to.

use catalog::domain::{
    digital_links::{LinkLevel, Tags, expand},
    resource::Product,
};
use shared::{digital_link::TypedLink, gtin::canonical};

/// Most pages of a product that are looked at together.
pub const MAX_PAGES: usize = 50;

/// The page of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedPage {
    /// The member of the product, such as `levels[0].links[1]`.
    pub path: String,
    /// The target with its tags replaced.
    pub url: String,
}

/// The first pages of a product, those of its GTIN before those of its levels; and how many are left out.
#[must_use]
pub fn of_product(product: &Product, serial: Option<&str>) -> (Vec<LinkedPage>, usize) {
    // As the links say it; older releases stored some with less than 14 digits.
    let (digital, gtin) = (&product.details.digital, canonical(product.gtin().unwrap_or_default()));
    let page = |path: String, level: Option<&LinkLevel>, link: &TypedLink| {
        let tags = Tags {
            gtin: &gtin,
            variant: level.and_then(|level| level.variant.as_deref()),
            lot: level.and_then(|level| level.lot.as_deref()),
            serial,
            thng_id: None,
        };
        LinkedPage { path, url: expand(&link.href, &tags) }
    };
    let mut pages = Vec::new();
    for (nth, link) in digital.of_gtin().iter().enumerate() {
        pages.push(page(format!("links[{nth}]"), None, link));
    }
    for (at, level) in digital.of_levels().iter().enumerate() {
        for (nth, link) in level.links.iter().enumerate() {
            pages.push(page(format!("levels[{at}].links[{nth}]"), Some(level), link));
        }
    }
    let left_out = pages.len().saturating_sub(MAX_PAGES);
    pages.truncate(MAX_PAGES);
    (pages, left_out)
}
