//! The JSON of a redirection.

use http::HeaderValue;
use qr::Ecl;
use serde_json::json;
use shared::{
    availability::{ACTIVE, Availability},
    short_url::ShortDomain,
};

use super::{App, Asking, Next};
use crate::{backing::Backing, cache::Served, response};

/// Which URLs of a link are shown.
#[derive(Clone, Copy)]
struct Shown {
    target: bool,
    ended_url: bool,
}

impl<B: Backing> App<B> {
    /// Answers with the JSON of a link, unless the URL is withheld that a scan would be led to now.
    ///
    /// While the link is closed its target is left out: programs follow what they find there, and a campaign that is still to
    /// come stays unknown. An ended page that is withheld is left out, too.
    pub(super) fn json(&self, asking: &Asking<'_>, served: &Served) -> Next {
        let site = asking.site;
        let is_open = self.why_closed(served, self.clock.now()).is_none();
        // It was validated by the same conversion when it was inserted.
        let ended = served.ended_location().ok().flatten();
        let withheld = |url: &HeaderValue| site.withheld.target(url.as_bytes());
        let leads_to = if is_open { Some(&served.location) } else { ended.as_ref() };
        if let Some(code) = leads_to.and_then(withheld) {
            return Next::Answer(self.errors_at(asking).closed_or_withheld(code));
        }
        let ended_url = ended.as_ref().is_some_and(|url| withheld(url).is_none());
        let shown = Shown { target: is_open, ended_url };
        Next::Answer(response::record(json(site.domain, served, shown)))
    }
}

/// The record of a redirection as JSON, without `hits` and `scopes`, which only control knows.
fn json(domain: &ShortDomain, served: &Served, shown: Shown) -> Vec<u8> {
    let record = &served.record;
    let payload = domain.qr_payload(&record.short_id);
    let availability = record.availability.as_deref();
    let mut json = json!({
        "createdAt": record.created_at,
        "updatedAt": record.updated_at,
        "shortDomain": domain.host,
        "shortId": record.short_id,
        "type": record.resource_type,
        "platformId": record.platform_id,
        "evrythngId": record.platform_id,
        "forwardQuery": record.forward_query,
        "statusCode": record.status_code,
        "status": availability.map_or(ACTIVE, Availability::status),
        "shortUrl": domain.short_url(&record.short_id),
    });
    if shown.target {
        json["defaultRedirectUrl"] = (*record.target).into();
    }
    for (name, value) in availability.into_iter().flat_map(Availability::members) {
        if name != "endedUrl" || shown.ended_url {
            json[name] = value;
        }
    }
    if domain.is_development() {
        json["development"] = true.into();
    }
    // A payload of 430 bytes at most always fits a symbol.
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
