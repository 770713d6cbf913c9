//! The JSON of a redirection.

use qr::Ecl;
use serde_json::json;
use shared::short_url::ShortDomain;

use crate::cache::Served;

/// The record of a redirection as JSON, without `hits` and `scopes`, which only control knows.
pub(super) fn json(domain: &ShortDomain, served: &Served) -> Vec<u8> {
    let record = &served.record;
    let payload = domain.qr_payload(&record.short_id);
    let mut json = json!({
        "createdAt": record.created_at,
        "updatedAt": record.updated_at,
        "shortDomain": domain.host,
        "shortId": record.short_id,
        "type": record.resource_type,
        "platformId": record.platform_id,
        "evrythngId": record.platform_id,
        "defaultRedirectUrl": record.target,
        "forwardQuery": record.forward_query,
        "shortUrl": domain.short_url(&record.short_id),
    });
    if domain.is_development() {
        json["development"] = true.into();
    }
    // A payload of 330 bytes at most always fits a symbol.
    if let Ok(facts) = qr::describe(&payload, Ecl::default()) {
        json["qr"] = json!({
            "payload": payload,
            "version": facts.version,
            "modules": facts.modules,
            "ecl": Ecl::default().as_str(),
        });
    }
    json.to_string().into_bytes()
}
