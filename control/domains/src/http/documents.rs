//! Short domains as answers show them.

use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::{
    domain_files::{DomainFiles, JsonFile},
    domain_paths::PathPrefix,
};
use utoipa::ToSchema;

use super::certificates::DomainCertificateDocument;
use crate::{
    domain::claim::{Claim, FILE_PATH, State},
    service::OwnDomain,
};

/// The TXT record that proves a domain.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DomainRecordDocument {
    /// Its type: `TXT`.
    #[serde(rename = "type")]
    #[schema(example = "TXT")]
    kind: &'static str,
    /// Its name.
    #[schema(example = "_waymark.go.example.com")]
    name: String,
    /// Its text. It stays where it is: it is looked for every day.
    #[schema(example = "waymark-domain=5f0c2a9d3b7e41c8a6d2f19e80b4c753")]
    value: String,
}

/// The file that proves a domain instead of the record.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DomainProofFileDocument {
    /// Where it must be, over HTTPS with a valid certificate, without a redirect.
    #[schema(example = "https://go.example.com/.well-known/waymark-domain.txt")]
    url: String,
    /// The path of it.
    #[schema(example = "/.well-known/waymark-domain.txt")]
    path: &'static str,
    /// What it holds.
    #[schema(example = "waymark-domain=5f0c2a9d3b7e41c8a6d2f19e80b4c753")]
    content: String,
}

/// A domain of an account.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DomainDocument {
    /// Host, with the port when it is not the scheme's default.
    #[schema(example = "tn.gg")]
    domain: String,
    /// The same.
    #[schema(read_only, example = "tn.gg")]
    host: String,
    /// `pending`: it was claimed, and no proof was found yet. `verified`: links may be on it. `unproven`: its proof is gone; its
    /// links go on, and no new ones can be made. `refused`: another account has proven it.
    #[schema(value_type = String, read_only, example = "verified")]
    state: &'static str,
    /// `account`: claimed by the account. `platform`: given by whoever runs this service, so that it needs no proof.
    #[schema(value_type = String, read_only, example = "platform")]
    source: &'static str,
    /// Only for development: its codes lead to an address of this machine or of a local network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, read_only)]
    development: bool,
    /// Seconds for which browsers and shared caches may keep redirects of its links (`Cache-Control: public, max-age=…, must-revalidate`), 0 to
    /// 86400; absent: they must not (`no-store`). A redirect that is kept is not counted as a scan, and a change, a pause or a
    /// take-down of its link is seen that much later. The redirect of a link that ends is not kept beyond its `validUntil`.
    /// Answers of closed and unknown links, and redirects of accounts that have rules, are never kept.
    #[schema(minimum = 0, maximum = 86_400, example = 60)]
    redirect_max_age: Option<u32>,
    /// Whether paths of GS1 Digital Links, such as `/01/09528765123457/21/A1`, are resolved on it. They lead where the links of
    /// products and Things of the account lead. What is changed here is done in the background.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, example = true)]
    digital_links: bool,
    /// A path below which its short ids are, too: `shop/go` for `https://tn.gg/shop/go/SHORTID`. 1 to 3 segments of 1 to 32 characters
    /// of `A-Z a-z 0-9 _ -`; it begins with no reserved word (such as `redirections`) and no key of GS1 (such as `01`). Absent: there
    /// is none. It can be changed while `prefixInUrls` is false; with `multiSegment` only while the domain has no links (409).
    #[schema(value_type = Option<String>, example = "shop/go")]
    path_prefix: Option<PathPrefix>,
    /// Whether short URLs and QR codes have the prefix; absent: they have not, so that codes stay as small as they were. Both forms
    /// of a short URL lead to the link, whatever it says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    prefix_in_urls: bool,
    /// Whether short ids of your choice may have up to 4 segments with a slash between (`sale/2026/shoes`), 64 characters in all;
    /// absent: they have one. It stays true once the domain has links (409). Generated short ids have one segment.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    multi_segment: bool,
    /// What `/robots.txt` of the domain says: `none` (nothing may be looked at) or `all`. Not in lists, nor are the two files.
    #[schema(value_type = Option<String>, example = "none")]
    robots: Option<&'static str>,
    /// What `/.well-known/assetlinks.json` of the domain holds, for apps on Android; absent: 404. An array of objects of at most
    /// 64 KiB.
    #[schema(value_type = Option<Vec<Object>>)]
    asset_links: Option<Value>,
    /// What `/.well-known/apple-app-site-association` of the domain holds, for apps on iOS; absent: 404. An object of at most
    /// 64 KiB.
    #[schema(value_type = Option<Object>)]
    apple_app_site_association: Option<Value>,
    /// The record that proves it; the file below does as well. Both are there only for a domain that the account has claimed.
    #[schema(read_only)]
    record: Option<DomainRecordDocument>,
    /// The file that proves it. Edges serve no such file: a host that leads to them is proven by the record.
    #[schema(read_only)]
    file: Option<DomainProofFileDocument>,
    /// What proved it last: `txt` or `file`.
    #[schema(value_type = Option<String>, read_only, example = "txt")]
    proof: Option<&'static str>,
    /// Why the last check found no proof.
    #[schema(read_only)]
    fault: Option<String>,
    /// When it was claimed, in milliseconds since 1970.
    #[schema(read_only)]
    created_at: Option<i64>,
    /// When its proof was last found.
    #[schema(read_only)]
    verified_at: Option<i64>,
    /// When its proof was last looked for.
    #[schema(read_only)]
    checked_at: Option<i64>,
    /// When its proof is looked for next; absent: only when it is asked for.
    #[schema(read_only)]
    next_check_at: Option<i64>,
    /// Since when it is `unproven`.
    #[schema(read_only)]
    unproven_since: Option<i64>,
    /// Of one that is `unproven`: from when on another account that proves the host gets it, if no links are on it. It is 30 days
    /// after `unprovenSince`.
    #[schema(read_only)]
    opens_at: Option<i64>,
    /// Of one that is `pending` or `refused`: when the claim ends, if it is not proven by then. It is 7 days after the claim, or
    /// earlier where many other accounts have claimed the host.
    #[schema(read_only)]
    ends_at: Option<i64>,
    /// Whether its certificate is ordered and renewed by itself; absent where this service orders none.
    automatic_certificate: Option<bool>,
    /// Its certificate; absent where this service orders none: for domains that it gave, that are not proven, or at all.
    #[schema(read_only)]
    certificate: Option<DomainCertificateDocument>,
}

impl DomainDocument {
    /// A domain of a list: without its files.
    pub(super) fn listed(own: OwnDomain) -> Self {
        let OwnDomain { domain, claim, certificate, .. } = own;
        let host = domain.host.to_string();
        let claim = claim.as_ref();
        Self {
            domain: host.clone(),
            host,
            state: claim.map_or(State::Verified, |claim| claim.state).as_str(),
            source: if claim.is_some() { "account" } else { "platform" },
            development: domain.is_development(),
            redirect_max_age: domain.redirect_max_age,
            digital_links: domain.digital_links,
            path_prefix: domain.paths.path_prefix,
            prefix_in_urls: domain.paths.prefix_in_urls,
            multi_segment: domain.paths.multi_segment,
            robots: None,
            asset_links: None,
            apple_app_site_association: None,
            record: claim.map(|claim| DomainRecordDocument {
                kind: "TXT",
                name: claim.record_name(),
                value: claim.content(),
            }),
            file: claim.map(|claim| DomainProofFileDocument {
                url: claim.file_url(),
                path: FILE_PATH,
                content: claim.content(),
            }),
            proof: claim.and_then(|claim| claim.proof).map(|proof| proof.as_str()),
            fault: claim.and_then(|claim| claim.fault.clone()),
            created_at: claim.map(|claim| claim.created_at.0),
            verified_at: claim.and_then(|claim| claim.verified_at).map(|at| at.0),
            checked_at: claim.and_then(|claim| claim.checked_at).map(|at| at.0),
            next_check_at: claim.and_then(|claim| claim.next_check).map(|at| at.0),
            unproven_since: claim.and_then(|claim| claim.unproven_since).map(|at| at.0),
            opens_at: claim.and_then(Claim::opens_at).map(|at| at.0),
            ends_at: claim.and_then(|claim| claim.ends_at).map(|at| at.0),
            automatic_certificate: certificate.as_ref().map(|own| !own.certificate.is_off),
            certificate: certificate.map(Into::into),
        }
    }
}

impl From<OwnDomain> for DomainDocument {
    fn from(own: OwnDomain) -> Self {
        if !own.is_held {
            return Self::listed(own);
        }
        let DomainFiles { robots, asset_links, apple_app_site_association } =
            own.domain.files.as_deref().cloned().unwrap_or_default();
        Self {
            robots: Some(robots.as_str()),
            asset_links: asset_links.as_ref().map(value_of),
            apple_app_site_association: apple_app_site_association.as_ref().map(value_of),
            ..Self::listed(own)
        }
    }
}

/// The document of a file, which was written as JSON.
fn value_of(file: &JsonFile) -> Value {
    serde_json::from_str(file.as_str()).unwrap_or_default()
}

/// Whether a list of these states shows a domain.
pub(super) fn is_shown(own: &OwnDomain, state: Option<Wanted>) -> bool {
    let found = own.claim.as_ref().map_or(State::Verified, |claim: &Claim| claim.state);
    match state {
        None => own.is_held,
        Some(Wanted::All) => true,
        Some(Wanted::Only(wanted)) => found == wanted,
    }
}

/// Which domains a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Every one.
    All,
    /// Those of a state.
    Only(State),
}

impl Wanted {
    /// Reads the parameter `state`; `None`: it names no state.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "all" { Some(Self::All) } else { text.parse().ok().map(Self::Only) }
    }
}
