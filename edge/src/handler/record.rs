//! The JSON of a redirection.

use qr::Ecl;
use serde_json::json;
use shared::{availability::Availability, short_url::ShortDomain, time::UnixMillis};

use crate::cache::Served;

/// The record of a redirection as JSON, without `hits` and `scopes`, which only control knows.
///
/// While the link is closed its target is left out: programs follow what they find there, and a campaign that is still to come
/// stays unknown.
pub(super) fn json(domain: &ShortDomain, served: &Served, now: UnixMillis) -> Vec<u8> {
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
        "forwardQuery": record.forward_query,
        "status": "active",
        "shortUrl": domain.short_url(&record.short_id),
    });
    if served.closed(now).is_none() {
        json["defaultRedirectUrl"] = (*record.target).into();
    }
    if let Some(availability) = &record.availability {
        let Availability { valid_from, valid_until, is_paused, ended_url } = &**availability;
        if *is_paused {
            json["status"] = "paused".into();
        }
        for (member, at) in [("validFrom", valid_from), ("validUntil", valid_until)] {
            if let Some(at) = at {
                json[member] = at.0.into();
            }
        }
        if let Some(url) = ended_url {
            json["endedUrl"] = (**url).into();
        }
    }
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
