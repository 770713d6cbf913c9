//! The links of Digital Links, as answers show them and bodies describe them.

use serde::Serialize;
use serde_json::{Value, json};
use serde_with_macros::skip_serializing_none;
use shared::digital_link::{SerialMode, TypedLink};
use utoipa::ToSchema;
use web::bodies::{Body, boolean, formatted, text};

use crate::domain::digital_links::{LinkLevel, MAX_ALIASES, MAX_LEVEL_DESCRIPTION, MAX_LEVELS, MAX_LINKS};

/// Where a Digital Link leads for one purpose.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TypedLinkDocument {
    /// A type of GS1's vocabulary, such as `gs1:pip`, or an absolute URI.
    #[schema(example = "gs1:pip")]
    link_type: String,
    /// The target: an absolute http or https URL, with the tags `{01}`, `{10}`, `{21}`, `{22}` and `{thngId}` behind its host. The
    /// same hosts are allowed as for redirections, but for short domains of this service.
    #[schema(example = "https://example.com/product/{01}?serial={21}")]
    href: String,
    /// What people read of it, 1 to 200 characters.
    #[schema(example = "Product page")]
    title: String,
    /// Media type of the target.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(example = "text/html")]
    media_type: Option<String>,
    /// Language tags of the target, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!(["de", "de-CH"]))]
    hreflang: Vec<String>,
    /// Contexts in which it holds, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    context: Vec<String>,
    /// Since when it holds, in milliseconds since 1970; not on the default link, nor is `to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    /// When it no longer does.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
    /// Whether a scan without a `linkType` leads there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, example = true)]
    default: bool,
}

/// Links of a lot or variant of a product.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LinkLevelDocument {
    /// The consumer product variant (22), 1 to 20 characters of GS1's set of 82; a level has this or one of the next two, or this
    /// and `lot`.
    variant: Option<String>,
    /// The batch or lot (10), 1 to 20 characters.
    #[schema(example = "L1")]
    lot: Option<String>,
    /// An extension that a third party controls (235), 1 to 28 characters; it stands alone.
    tpx: Option<String>,
    /// What it is called, 1 to 256 characters; without it, the name of the product.
    description: Option<String>,
    /// 1 to 64 links, exactly one of them the default.
    links: Vec<TypedLinkDocument>,
}

impl TypedLinkDocument {
    pub(super) fn all(links: Vec<TypedLink>) -> Vec<Self> {
        links.into_iter().map(Self::from).collect()
    }
}

impl From<TypedLink> for TypedLinkDocument {
    fn from(link: TypedLink) -> Self {
        let texts = |all: Vec<std::sync::Arc<str>>| all.iter().map(|text| text.to_string()).collect();
        Self {
            link_type: link.link_type.to_string(),
            href: link.href.to_string(),
            title: link.title.to_string(),
            media_type: link.media_type.map(|text| text.to_string()),
            hreflang: texts(link.hreflang),
            context: texts(link.context),
            from: link.from,
            to: link.to,
            default: link.default,
        }
    }
}

impl From<LinkLevel> for LinkLevelDocument {
    fn from(level: LinkLevel) -> Self {
        let LinkLevel { variant, lot, tpx, description, links } = level;
        Self { variant, lot, tpx, description, links: TypedLinkDocument::all(links) }
    }
}

/// The schema of `links`.
pub(super) fn links() -> Value {
    let tags = |pattern: &str| {
        let item = json!({"type": "string", "minLength": 1, "maxLength": 64, "pattern": pattern});
        json!({"type": "array", "maxItems": 20, "items": item})
    };
    let time = || json!({"type": "integer", "format": "int64", "minimum": 0});
    let link = Body::new("")
        .must("linkType", formatted("link-type", "`gs1:` and a name, or an absolute URI; at most 256 bytes."))
        .must(
            "href",
            formatted(
                "link-target",
                "An absolute http or https URL, at most 2,048 bytes with the values of its tags.",
            ),
        )
        .must("title", text(1, 200))
        .may(
            "type",
            json!({"type": "string", "maxLength": 127,
            "pattern": "^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$"}),
        )
        .may("hreflang", tags("^[A-Za-z][A-Za-z0-9-]*$"))
        .may("context", tags("^[!-~]+$"))
        .may("from", time())
        .may("to", time())
        .may("default", boolean())
        .schema();
    json!({"type": "array", "maxItems": MAX_LINKS, "items": link,
        "description": "Exactly one has `default` true."})
}

/// The schema of `levels`.
pub(super) fn levels() -> Value {
    let qualifier =
        |most: usize| json!({"type": "string", "maxLength": most, "pattern": "^[!\"%-?A-Z_a-z]+$"});
    let level = Body::new("")
        .may("variant", qualifier(20))
        .may("lot", qualifier(20))
        .may("tpx", qualifier(28))
        .may("description", text(1, MAX_LEVEL_DESCRIPTION))
        .must("links", links())
        .schema();
    json!({"type": "array", "maxItems": MAX_LEVELS, "items": level})
}

/// The schema of `serialMode`.
pub(super) fn serial_mode() -> Value {
    let all = [SerialMode::None, SerialMode::Template, SerialMode::Overrides, SerialMode::Known];
    json!({"type": "string", "enum": all.map(SerialMode::as_str)})
}

/// The schema of `gtinAliases`.
pub(super) fn aliases() -> Value {
    json!({"type": "array", "maxItems": MAX_ALIASES, "items": {"type": "string", "format": "gtin"}})
}

/// Links for an example.
pub(super) fn example() -> Value {
    json!([{"linkType": "gs1:pip", "href": "https://example.com/product/{01}", "title": "Product page", "default": true}])
}
