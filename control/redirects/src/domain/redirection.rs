//! Redirections in control, and the rules for their members.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    id::{AccountId, ResourceId},
    redirect::{Redirect, ResourceType},
    redirect_status::RedirectStatus,
    short_id::ShortId,
    short_url::ShortDomain,
    target::Target,
    wire::stream::Rev,
};

use super::availability::{AvailabilityChange, Patch, patch};
use super::link_details::{Described, LinkDetails};
use super::members::Members;
use super::scopes::{Scopes, read_scopes};
use super::withheld::TakeDown;

// Spec gap: targets that lead back to their own short URL are not mentioned; they are refused.
/// Most short URLs that may lead to each other before a real target.
pub const MAX_CHAIN: usize = 5;

/// Most redirections that one request may create, change or delete.
pub const MAX_BULK: usize = 1_000;

/// A redirection with what only control holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirection {
    /// The account it belongs to.
    pub account: AccountId,
    /// Its short domain.
    pub domain: ShortDomain,
    /// What edges hold too.
    pub redirect: Redirect,
    /// Access besides operators.
    pub scopes: Scopes,
    /// Redirects counted, without bots.
    pub hits: i64,
    /// The revision that wrote it last.
    pub rev: Rev,
    /// Order of insertion, for paging.
    pub seq: i64,
    /// Its descriptive fields, which edges never receive.
    #[serde(default)]
    pub details: LinkDetails,
    /// Why nobody is led to its target, or else to its ended page; what stores and changes redirections leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_down: Option<TakeDown>,
}

impl Redirection {
    /// The short URL.
    #[must_use]
    pub fn short_url(&self) -> String {
        self.domain.short_url(&self.redirect.short_id)
    }
}

// Spec gap: bodies of create and update are not shown; PUT replaces what is writable.
/// The members that a PUT replaces; the others identify the redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writable {
    /// Where the short URL leads.
    pub target: Target,
    /// Whether the request's query is appended to the target.
    pub forward_query: bool,
    /// The status code with which it leads there; what is left out stays.
    pub status_code: Patch<RedirectStatus>,
    /// When it leads there; what is left out stays.
    pub availability: AvailabilityChange,
    /// Access besides operators.
    pub scopes: Scopes,
    /// Its descriptive fields; what is left out stays.
    pub described: Described,
}

impl Writable {
    /// Reads the body of a PUT.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let writable = Self::read(&mut members);
        members.finish(writable)
    }

    /// Every URL of it that people may be led to, with its member.
    pub fn targets(&self) -> impl Iterator<Item = (&'static str, &Target)> {
        let ended = self.availability.ended_url.value().map(|target| ("endedUrl", target));
        std::iter::once(("defaultRedirectUrl", &self.target)).chain(ended)
    }

    fn read(members: &mut Members<'_>) -> Option<Self> {
        let target = match (members.raw("defaultRedirectUrl").is_some(), members.text("defaultRedirectUrl")) {
            (false, _) => {
                members.fault("defaultRedirectUrl is required.");
                None
            }
            (true, None) => None,
            (true, Some(text)) => Target::parse(text)
                .map_err(|fault| members.fault(format!("defaultRedirectUrl {fault}.")))
                .ok(),
        };
        let forward_query = members.boolean("forwardQuery").unwrap_or_default();
        let status_code = patch(members, "statusCode", |members| {
            members.typed("statusCode", "301, 302, 307 or 308", |value| {
                RedirectStatus::try_from(u16::try_from(value.as_u64()?).ok()?).ok()
            })
        });
        let availability = AvailabilityChange::read(members);
        let scopes = read_scopes(members);
        let described = Described::read(members);
        Some(Self { target: target?, forward_query, status_code, availability, scopes, described })
    }
}

/// A redirection as a create request asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The resource it should belong to: `platformId` or its alias `evrythngId`.
    pub platform_id: ResourceId,
    /// The kind of the resource, if the request names it.
    pub resource_type: Option<ResourceType>,
    /// A short id of the caller's choice.
    pub short_id: Option<ShortId>,
    /// The short domain, if the request names it.
    pub short_domain: Option<String>,
    /// What may be replaced later.
    pub writable: Writable,
}

impl Draft {
    /// Reads the body of a create request; `resource` comes from the path or query and wins.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, resource: Option<(ResourceId, ResourceType)>) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let platform_id = match resource {
            Some((id, _)) => Some(id),
            None => read_platform_id(&mut members),
        };
        let named_type = members.text("type").map(|text| {
            text.parse::<ResourceType>()
                .map_err(|()| members.fault("type must be thng, product, collection or place."))
                .ok()
        });
        let resource_type = resource.map(|(_, kind)| kind).or(named_type.flatten());
        let short_id = members.text("shortId").and_then(|text| {
            ShortId::parse_custom(text).map_err(|error| members.fault(format!("shortId: {error}."))).ok()
        });
        let short_domain = members.text("shortDomain").map(str::to_ascii_lowercase);
        let writable = Writable::read(&mut members);
        let draft = platform_id.zip(writable).map(|(platform_id, writable)| Self {
            platform_id,
            resource_type,
            short_id,
            short_domain,
            writable,
        });
        members.finish(draft)
    }
}

fn read_platform_id(members: &mut Members<'_>) -> Option<ResourceId> {
    let given = members.raw("platformId").is_some() || members.raw("evrythngId").is_some();
    if !given {
        members.fault("platformId is required.");
    }
    let platform: Option<ResourceId> = members.parsed("platformId");
    let alias: Option<ResourceId> = members.parsed("evrythngId");
    if let (Some(platform), Some(alias)) = (platform, alias)
        && platform != alias
    {
        members.fault("platformId and evrythngId must be the same.");
    }
    platform.or(alias)
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    #[test]
    fn drafts_name_every_fault() {
        let url = "https://example.com/{shortId}";
        for (body, expected) in [
            (json!({"platformId": ID, "defaultRedirectUrl": url}), vec![]),
            (json!({"evrythngId": ID, "defaultRedirectUrl": url, "type": "thng", "unknown": 1}), vec![]),
            (json!({"platformId": ID, "evrythngId": ID, "defaultRedirectUrl": url, "shortId": null}), vec![]),
            (json!({}), vec!["platformId is required", "defaultRedirectUrl is required"]),
            (
                json!({"platformId": "x", "defaultRedirectUrl": 1}),
                vec!["platformId: an id", "defaultRedirectUrl must be a string"],
            ),
            (
                json!({"platformId": ID, "evrythngId": "UKXAGyEf8SQ5eTDmVgGpHqAb", "defaultRedirectUrl": url}),
                vec!["must be the same"],
            ),
            (
                json!({"platformId": ID, "defaultRedirectUrl": "javascript:alert(1)"}),
                vec!["defaultRedirectUrl must be an absolute"],
            ),
            (json!({"platformId": ID, "defaultRedirectUrl": url, "type": "box"}), vec!["type must be"]),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "shortId": "a b"}),
                vec!["shortId: a short id"],
            ),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "shortId": "v2"}),
                vec!["shortId: this short id is a reserved word"],
            ),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "forwardQuery": "yes"}),
                vec!["forwardQuery must be true or false"],
            ),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "scopes": []}),
                vec!["scopes must be an object"],
            ),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "scopes": {"users": "all"}}),
                vec!["scopes must be an object"],
            ),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "scopes": {"users": ["all", "x"]}}),
                vec!["scopes must hold ids"],
            ),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "title": 1, "tags": [1]}),
                vec!["title must be a string", "tags must be an array of strings"],
            ),
            (
                json!({"platformId": ID, "validFrom": "now", "status": "off", "endedUrl": "javascript:alert(1)"}),
                vec![
                    "defaultRedirectUrl is required",
                    "validFrom must be an integer",
                    "status must be active or paused",
                    "endedUrl must be an absolute",
                ],
            ),
            (json!({"platformId": ID, "defaultRedirectUrl": url, "statusCode": 301}), vec![]),
            (json!({"platformId": ID, "defaultRedirectUrl": url, "statusCode": null}), vec![]),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "statusCode": 303, "status": "off"}),
                vec!["statusCode must be 301, 302, 307 or 308", "status must be active or paused"],
            ),
            (
                json!({"platformId": ID, "defaultRedirectUrl": url, "statusCode": "301"}),
                vec!["statusCode must be 301, 302, 307 or 308"],
            ),
            (
                // 301 in the last 16 bits.
                json!({"platformId": ID, "defaultRedirectUrl": url, "statusCode": 65_837}),
                vec!["statusCode must be 301, 302, 307 or 308"],
            ),
            (json!([]), vec!["The body must be a JSON object"]),
        ] {
            assert_faults(&body, |body| Draft::parse(body, None), &expected);
        }
    }

    #[test]
    fn a_status_code_stays_until_it_is_changed_or_removed() {
        use RedirectStatus::{Found, MovedPermanently, TemporaryRedirect};
        let change = |status: Value, before| {
            let body = match status {
                Value::Bool(_) => json!({"defaultRedirectUrl": "https://e.com"}),
                status => json!({"defaultRedirectUrl": "https://e.com", "statusCode": status}),
            };
            Writable::parse(&body).unwrap().status_code.or_default(before)
        };
        for (status, before, after) in [
            (json!(false), MovedPermanently, MovedPermanently),
            (json!(false), TemporaryRedirect, TemporaryRedirect),
            (json!(302), MovedPermanently, Found),
            (json!(307), MovedPermanently, TemporaryRedirect),
            (json!(null), MovedPermanently, TemporaryRedirect),
        ] {
            assert_eq!(change(status.clone(), before), after, "{status} after {before:?}");
        }
    }

    #[test]
    fn the_path_names_the_resource() {
        let id: ResourceId = ID.parse().unwrap();
        let draft =
            Draft::parse(&json!({"defaultRedirectUrl": "https://e.com"}), Some((id, ResourceType::Product)))
                .unwrap();
        assert_eq!((draft.platform_id, draft.resource_type), (id, Some(ResourceType::Product)));
    }
}
