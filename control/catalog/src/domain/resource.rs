//! Products and Thngs: their members, and how an update merges into them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::{
    digital_link::TypedLink,
    id::{CollectionId, ProductId, ThngId},
    time::UnixMillis,
};

use super::common::{Common, Stamp};
use super::{digital_links::ProductLinks, location::Location, named::named, property::NewPoint};

/// The members of a product beside its name; stored as one document.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProductDetails {
    /// What Thngs have too.
    #[serde(flatten)]
    pub common: Common,
    /// Brand.
    pub brand: Option<String>,
    /// Categories.
    pub categories: Option<Vec<String>>,
    /// URLs of photos.
    pub photos: Option<Vec<String>>,
    /// URL of its page.
    pub url: Option<String>,
    /// Where its Digital Links lead.
    #[serde(flatten)]
    pub digital: ProductLinks,
}

/// The members of a Thng beside its name and product; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ThngDetails {
    /// What products have too.
    #[serde(flatten)]
    pub common: Common,
    /// A kind that the caller chose.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Where it was last; written with its history and by nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Where the Digital Link of its serial leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<TypedLink>>,
}

/// A product: what Thngs are instances of.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// Its id.
    pub id: ProductId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name, also read as `fn`.
    pub name: String,
    /// Everything else.
    pub details: ProductDetails,
    /// Latest values of its properties, as far as the caller may read them.
    pub properties: BTreeMap<String, Value>,
}

/// The members of a create or update of a product; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProductChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Everything else.
    pub details: ProductDetails,
    /// Initial values of its properties; on create only.
    pub properties: Vec<NewPoint>,
}

impl Product {
    /// Its GTIN, if it has one: 14 digits, but for what older releases stored.
    #[must_use]
    pub fn gtin(&self) -> Option<&str> {
        self.details.common.identifiers.as_ref()?.get("gs1:01").map(String::as_str)
    }

    /// The product after a change at `now`.
    #[must_use]
    pub fn apply(self, change: ProductChange, now: UnixMillis) -> Self {
        let (old, new) = (self.details, change.details);
        let details = ProductDetails {
            common: old.common.merge(new.common),
            brand: new.brand.or(old.brand),
            categories: new.categories.or(old.categories),
            photos: new.photos.or(old.photos),
            url: new.url.or(old.url),
            digital: old.digital.merge(new.digital),
        };
        Self { stamp: self.stamp.touch(now), name: change.name.unwrap_or(self.name), details, ..self }
    }
}

/// A Thng: one tracked item.
#[derive(Debug, Clone, PartialEq)]
pub struct Thng {
    /// Its id.
    pub id: ThngId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// The product it is an instance of.
    pub product: Option<ProductId>,
    /// The collections it is in, in order of their ids.
    pub collections: Vec<CollectionId>,
    /// Everything else.
    pub details: ThngDetails,
    /// Latest values of its properties, as far as the caller may read them.
    pub properties: BTreeMap<String, Value>,
}

/// The members of a create or update of a Thng; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThngChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Its product, which must exist.
    pub product: Option<ProductId>,
    /// The collections it should be in, which must exist.
    pub collections: Option<Vec<CollectionId>>,
    /// Where it is, read on create only.
    pub location: Option<Location>,
    /// Everything else.
    pub details: ThngDetails,
    /// Initial values of its properties; on create only.
    pub properties: Vec<NewPoint>,
}

impl Thng {
    /// Its serial, if it has one.
    #[must_use]
    pub fn serial(&self) -> Option<&str> {
        self.details.common.identifiers.as_ref()?.get("gs1:21").map(String::as_str)
    }

    /// Links of its serial.
    #[must_use]
    pub fn links(&self) -> &[TypedLink] {
        self.details.links.as_deref().unwrap_or_default()
    }

    /// A Thng created at `now`, in no collection.
    #[must_use]
    pub fn new(
        id: ThngId,
        name: String,
        product: Option<ProductId>,
        details: ThngDetails,
        now: UnixMillis,
    ) -> Self {
        let (collections, properties) = (Vec::new(), BTreeMap::new());
        Self { id, stamp: Stamp::new(now), name, product, collections, details, properties }
    }

    /// The Thng after a change at `now`.
    #[must_use]
    pub fn apply(self, change: ThngChange, now: UnixMillis) -> Self {
        let (old, new) = (self.details, change.details);
        let details = ThngDetails {
            common: old.common.merge(new.common),
            kind: new.kind.or(old.kind),
            location: old.location,
            links: new.links.or(old.links),
        };
        Self {
            stamp: self.stamp.touch(now),
            name: change.name.unwrap_or(self.name),
            product: change.product.or(self.product),
            collections: change.collections.unwrap_or(self.collections),
            details,
            ..self
        }
    }
}

named! {
    Product: ProductId, ProductDetails, "product", Products, properties;
    Thng: ThngId, ThngDetails, "thng", Thngs, properties;
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::domain::{location::Coordinates, scopes::Scopes};

    #[test]
    fn an_update_replaces_the_members_given_and_keeps_the_rest() {
        let product = Product {
            id: ProductId::new(1, [1; 16]),
            stamp: Stamp { seq: 1, created_at: UnixMillis(5), updated_at: UnixMillis(5) },
            name: "a".to_owned(),
            details: ProductDetails {
                common: Common {
                    tags: Some(vec!["old".to_owned()]),
                    description: Some("kept".to_owned()),
                    ..Common::default()
                },
                brand: Some("kept".to_owned()),
                ..ProductDetails::default()
            },
            properties: BTreeMap::new(),
        };
        let change = ProductChange {
            name: None,
            details: ProductDetails {
                common: Common { tags: Some(vec![]), ..Common::default() },
                url: Some("https://example.com".to_owned()),
                ..ProductDetails::default()
            },
            properties: Vec::new(),
        };
        let changed = product.clone().apply(change, UnixMillis(5));
        assert_eq!(changed.name, "a");
        assert_eq!(changed.details.common.tags, Some(vec![]));
        assert_eq!(changed.details.common.description.as_deref(), Some("kept"));
        assert_eq!(changed.details.brand.as_deref(), Some("kept"));
        assert_eq!(changed.details.url.as_deref(), Some("https://example.com"));
        assert_eq!(changed.stamp.updated_at, UnixMillis(6));
        assert_eq!(changed.stamp.created_at, product.stamp.created_at);
    }

    #[test]
    fn current_and_old_documents_are_read() {
        let details = ThngDetails {
            common: Common {
                custom_fields: Some(Map::from_iter([("Serial".to_owned(), Value::from(1))])),
                scopes: Some(Scopes { users: vec!["all".to_owned()], projects: vec![] }),
                ..Common::default()
            },
            kind: Some("k".to_owned()),
            location: Some(Location { coordinates: Coordinates::new(1.5, 2.0), ..Location::default() }),
            links: None,
        };
        let text = serde_json::to_string(&details).unwrap();
        assert_eq!(serde_json::from_str::<ThngDetails>(&text).unwrap(), details);
        assert_eq!(serde_json::from_str::<ThngDetails>("{}").unwrap(), ThngDetails::default());
    }
}
