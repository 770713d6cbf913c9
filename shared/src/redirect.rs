//! One redirection as control stores it and an edge serves it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    availability::Availability,
    digital_link::LinkSet,
    id::{ProductId, ProjectId, ResourceId, ThngId},
    redirect_status::RedirectStatus,
    short_id::ShortId,
    short_url::Host,
    standing::Standing,
    target::TagValues,
    time::UnixMillis,
};

crate::words! {
    /// What kind of resource a redirection belongs to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ResourceType {
        /// A Thng.
        Thng = "thng",
        /// A product.
        Product = "product",
        /// A collection.
        Collection = "collection",
        /// A place.
        Place = "place",
    } else ()
}

/// The key by which an edge finds a redirection: host and folded short id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RedirectKey {
    /// Host of the short domain.
    pub domain: Arc<str>,
    /// The short id, folded according to the domain.
    pub folded: Arc<str>,
}

impl RedirectKey {
    /// The key of a folded short id on a host.
    #[must_use]
    pub fn new(domain: &str, folded: &str) -> Self {
        Self { domain: domain.into(), folded: folded.into() }
    }
}

/// A redirection as both sides hold it; without counters and access lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Redirect {
    /// Host of the short domain.
    pub domain: Host,
    /// The short id as it was given out.
    pub short_id: ShortId,
    /// Kind of the resource behind.
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    /// The resource behind: `platformId`, alias `evrythngId`.
    pub platform_id: ResourceId,
    /// The Thng behind, for `{thngId}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thng_id: Option<ThngId>,
    /// The product behind (the Thng's own, when it has one), for `{productId}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<ProductId>,
    /// Name of the Thng, for rules that test it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thng_name: Option<Box<str>>,
    /// Status of the Thng, for rules that test it.
    #[serde(default, skip_serializing_if = "Standing::is_empty")]
    pub standing: Standing,
    /// Projects that its scopes name: the rules of their applications hold for it.
    #[serde(default, skip_serializing_if = "<[ProjectId]>::is_empty")]
    pub projects: Box<[ProjectId]>,
    /// The target as stored, tags not expanded; validated when it was written.
    pub target: Box<str>,
    /// Whether the request's query is appended to the target.
    #[serde(default)]
    pub forward_query: bool,
    /// The status code with which it leads to its target. Edges of releases before this member answer with the default.
    #[serde(default, skip_serializing_if = "RedirectStatus::is_default")]
    pub status_code: RedirectStatus,
    /// When it leads to its target; boxed, because most always do. Edges of releases before this member do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability: Option<Box<Availability>>,
    /// The typed links, where the short id is the path of a GS1 Digital Link. Edges of releases before this member do not see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digital_link: Option<Box<LinkSet>>,
    /// When it was created.
    pub created_at: UnixMillis,
    /// When it was last changed.
    pub updated_at: UnixMillis,
}

impl Redirect {
    /// The URLs that it leads to, tags not expanded: its target, and its ended page if it has one.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        let ended = self.availability.as_ref().and_then(|availability| availability.ended_url.as_deref());
        std::iter::once(&*self.target).chain(ended)
    }

    /// A link of a Thng that was made at `at`, leads to its target and sets nothing else.
    #[must_use]
    pub fn plain(
        domain: Host,
        short_id: ShortId,
        platform_id: ResourceId,
        target: impl Into<Box<str>>,
        at: UnixMillis,
    ) -> Self {
        Self {
            domain,
            short_id,
            resource_type: ResourceType::Thng,
            platform_id,
            thng_id: None,
            product_id: None,
            thng_name: None,
            standing: Standing::default(),
            projects: Box::default(),
            target: target.into(),
            forward_query: false,
            status_code: RedirectStatus::default(),
            availability: None,
            digital_link: None,
            created_at: at,
            updated_at: at,
        }
    }

    /// What the tags of its targets stand for.
    #[must_use]
    pub fn tag_values(&self) -> TagValues<'_> {
        TagValues {
            short_id: self.short_id.as_str(),
            platform_id: self.platform_id.as_str(),
            thng_id: self.thng_id.as_ref().map(|id| id.as_str()),
            product_id: self.product_id.as_ref().map(|id| id.as_str()),
        }
    }
}
