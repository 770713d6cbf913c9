//! The description of a domain as a resolver, `/.well-known/gs1resolver`.

use digital_link::link_types;
use serde_json::json;
use shared::short_url::ShortDomain;

use crate::answer::CONTEXT;

/// The description as JSON. Its contact has the name that the account shows on its pages, else the host.
pub(crate) fn json(domain: &ShortDomain) -> Vec<u8> {
    let host = domain.host.as_str();
    let name = domain.pages.as_ref().and_then(|pages| pages.name.as_deref()).unwrap_or(host);
    let described = json!({
        "name": name,
        "resolverRoot": format!("{}://{host}", domain.scheme.as_str()),
        "supportedPrimaryKeys": ["01"],
        "supportedLinkType": [{ "namespace": link_types::NAMESPACE, "prefix": link_types::PREFIX }],
        "linkTypeDefaultCanBeLinkset": false,
        "jsonLdContextLocation": CONTEXT,
        "contact": { "fn": name },
    });
    described.to_string().into_bytes()
}
