//! Which Digital Links a product or Thng has, and where each leads.

use catalog::domain::{
    digital_links::{Tags, expand, read_gtin},
    resource::{Product, Thng},
};
use digital_link::{DigitalLink, Qualifier};
use shared::{
    digital_link::{LinkSet, SerialMode, TypedLink},
    short_id::ShortId,
};

/// One Digital Link of a resource, on every domain that resolves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its canonical path without the first slash.
    pub short_id: ShortId,
    /// The default link, its tags replaced: those that are known when a scan comes are empty.
    pub target: String,
    /// All of its links.
    pub set: LinkSet,
}

/// Those of a product: of its GTIN and former ones, and of lots and variants of each.
#[must_use]
pub fn of_product(product: &Product) -> Vec<Planned> {
    let digital = &product.details.digital;
    let mode = digital.serial_mode.unwrap_or_default();
    let mut planned = Vec::new();
    for gtin in gtins(product) {
        let Ok(of_gtin) = DigitalLink::new(gtin) else { continue };
        planned.extend(plan(&of_gtin, (digital.of_gtin(), &product.name), mode, None));
        for level in digital.of_levels() {
            let Some(path) = level.path(of_gtin.clone()) else { continue };
            let description = level.description.as_deref().unwrap_or(&product.name);
            planned.extend(plan(&path, (&level.links, description), mode, None));
        }
    }
    planned
}

/// Those of a Thng: of its serial, with each GTIN of its product. Without links of its own it has one only where every serial
/// that was issued has one; a scan of it leads where its product does.
#[must_use]
pub fn of_thng(thng: &Thng, product: &Product) -> Vec<Planned> {
    let mode = product.details.digital.serial_mode.unwrap_or_default();
    let Some(serial) = thng.serial().filter(|_| mode.has_items()) else { return Vec::new() };
    let is_own = !thng.links().is_empty();
    if !is_own && mode != SerialMode::Known {
        return Vec::new();
    }
    let links = if is_own { thng.links() } else { product.details.digital.of_gtin() };
    let thng_id = thng.id.to_string();
    let one = |gtin: String| {
        let path = DigitalLink::new(gtin).and_then(|link| link.with(Qualifier::Serial, serial)).ok()?;
        let mut one = plan(&path, (links, &thng.name), mode, Some(&thng_id))?;
        if !is_own {
            one.set.links = Vec::new();
        }
        Some(one)
    };
    gtins(product).into_iter().filter_map(one).collect()
}

/// The GTINs that Digital Links of a product say, each once, its own before former ones. Older releases stored some with less than 14 digits.
#[must_use]
pub fn gtins(product: &Product) -> Vec<String> {
    let own = product.gtin().and_then(|gtin| read_gtin(gtin).ok());
    let mut all: Vec<String> = own.into_iter().collect();
    for alias in product.details.digital.aliases() {
        if !all.contains(alias) {
            all.push(alias.clone());
        }
    }
    all
}

/// A level; `None` without links.
fn plan(
    path: &DigitalLink<'_>,
    (links, description): (&[TypedLink], &str),
    serial_mode: SerialMode,
    thng_id: Option<&str>,
) -> Option<Planned> {
    let default = links.iter().find(|link| link.default)?;
    let tags = Tags {
        gtin: path.gtin(),
        variant: path.get(Qualifier::Variant),
        lot: path.get(Qualifier::Lot),
        serial: path.get(Qualifier::Serial),
        thng_id,
    };
    Some(Planned {
        short_id: path.path().trim_start_matches('/').parse().ok()?,
        target: expand(&default.href, &tags),
        set: LinkSet { description: description.into(), serial_mode, links: links.to_vec() },
    })
}

#[cfg(test)]
mod tests {
    use catalog::domain::{
        body::Purpose,
        resource::{ProductChange, ThngChange},
    };
    use serde_json::{Value, json};
    use shared::{
        id::{ProductId, ThngId},
        time::UnixMillis,
    };

    use super::*;

    fn product(mode: &str) -> Product {
        let link = |href: &str| json!([{"linkType": "gs1:pip", "href": href, "title": "T", "default": true}]);
        let body = json!({"name": "Shoe", "identifiers": {"gs1:01": "09521234543213"}, "serialMode": mode,
            "gtinAliases": ["9521234543220"], "links": link("https://e.com/{01}/{21}"),
            "levels": [{"lot": "l/1", "description": "Spring", "links": link("https://e.com/lot/{10}")}]});
        let change = ProductChange::parse(&body, Purpose::Create).unwrap();
        Product {
            id: ProductId::new(1, [1; 16]),
            stamp: catalog::domain::common::Stamp::new(UnixMillis(1)),
            name: "Shoe".to_owned(),
            details: change.details,
            properties: std::collections::BTreeMap::new(),
        }
    }

    fn thng(links: Value) -> Thng {
        let body = json!({"name": "One", "identifiers": {"gs1:21": "S1"}, "links": links});
        let change = ThngChange::parse(&body, Purpose::Create).unwrap();
        Thng::new(ThngId::new(1, [1; 16]), "One".to_owned(), None, change.details, UnixMillis(1))
    }

    fn rows(planned: &[Planned]) -> Vec<(&str, &str, &str, usize)> {
        planned
            .iter()
            .map(|one| (one.short_id.as_str(), &*one.target, &*one.set.description, one.set.links.len()))
            .collect()
    }

    #[test]
    fn a_product_has_a_row_for_each_gtin_and_level() {
        assert_eq!(
            rows(&of_product(&product("none"))),
            [
                ("01/09521234543213", "https://e.com/09521234543213/", "Shoe", 1),
                ("01/09521234543213/10/l%2F1", "https://e.com/lot/l%2F1", "Spring", 1),
                ("01/09521234543220", "https://e.com/09521234543220/", "Shoe", 1),
                ("01/09521234543220/10/l%2F1", "https://e.com/lot/l%2F1", "Spring", 1),
            ]
        );
        let mut old = product("none");
        old.details.common.identifiers = Some([("gs1:01".to_owned(), "9521234543213".to_owned())].into());
        old.details.digital.gtin_aliases.as_mut().unwrap().push("09521234543213".to_owned());
        assert_eq!(
            of_product(&old),
            of_product(&product("none")),
            "stored by an older release, and named twice"
        );
    }

    #[test]
    fn an_item_has_rows_only_where_the_mode_asks_for_them() {
        let own = json!([{"linkType": "gs1:pip", "href": "https://e.com/i/{thngId}", "title": "T", "default": true}]);
        for (mode, links, expected) in [
            ("none", own.clone(), 0),
            ("template", own.clone(), 0),
            ("overrides", json!([]), 0),
            ("overrides", own.clone(), 2),
            ("known", own, 2),
            ("known", json!([]), 2),
        ] {
            let (thng, product) = (thng(links.clone()), product(mode));
            let planned = of_thng(&thng, &product);
            assert_eq!(planned.len(), expected, "{mode} {links}");
            if let Some(first) = planned.first() {
                assert_eq!(first.short_id.as_str(), "01/09521234543213/21/S1");
                let is_own = links != json!([]);
                let leads = if is_own {
                    format!("https://e.com/i/{}", thng.id)
                } else {
                    "https://e.com/09521234543213/S1".to_owned()
                };
                assert_eq!((&first.target, first.set.links.len()), (&leads, usize::from(is_own)));
            }
        }
    }
}
