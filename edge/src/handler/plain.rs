//! Redirects of plain requests, which [`crate::plain`] reads and answers itself.

use bytes::Bytes;
use http::{HeaderValue, Method};
use scans::Asked;
use shared::{negotiate::Representation, redirect_status::RedirectStatus, time::UnixMillis};

use super::{App, digital_link::epc};
use crate::{
    backing::Backing,
    cache::{CacheStatus, Held, Leads},
    connection::Client,
    framing::Sent,
    redirect_head::RedirectHead,
    response,
    route::{self, Ask, Route},
};

/// Most bytes of a page that is answered here: connections keep the memory of the largest answer. Only a logo makes one larger.
const MAX_PAGE: usize = 8 << 10;

/// The answer to a plain request.
pub(crate) enum Plainly {
    /// A redirect to there.
    To(HeaderValue, RedirectHead),
    /// A redirect of a Digital Link to there, with this value of `Link`.
    Linked { location: String, status: RedirectStatus, link: String },
    /// 404 with this type and body.
    Unknown(&'static str, Bytes),
}

impl<B: Backing> App<B> {
    /// The answer to a request without a query, which is recorded then; `None` when it needs anything else, and nothing
    /// is counted or recorded.
    pub(crate) fn answer_plainly(
        &self,
        client: Client,
        is_head: bool,
        path: &str,
        sent: &Sent<'_>,
        now: UnixMillis,
    ) -> Option<Plainly> {
        if path.len() > self.config.limits.uri_bytes {
            return None;
        }
        let method = if is_head { &Method::HEAD } else { &Method::GET };
        let accept = sent.accept;
        let ask = Ask { method, host: sent.host(), path, query: None, accept, has_authorization: false };
        let domains = self.domains.load();
        let link = match route::route(&domains, &ask) {
            Route::Link(link) => link,
            Route::DigitalLink(domain) => {
                return self.digital_link_plainly((client, is_head), (path, sent), (&domains, domain), now);
            }
            _ => return None,
        };
        let withheld = &domains.withheld;
        if link.representation != Representation::Redirect
            || withheld.link(link.domain.account.as_ref(), link.key()).is_some()
            || self.asks_more(link.domain)
        {
            return None;
        }
        let (location, status) = match self.cache.leads(link.key()) {
            Held::Present(Leads::To(lead)) => (lead.location, lead.status_code),
            // Its target may depend on the time.
            Held::Present(Leads::Served(served)) if served.record.availability.is_some() => return None,
            Held::Present(Leads::Served(served)) => (served.location.clone(), served.record.status_code),
            Held::Absent if epc(link.domain, path).is_some() => return None,
            Held::Absent => {
                let (kind, body) = self.errors_on(sent, link.domain, withheld).body_of_unknown();
                if body.len() > MAX_PAGE {
                    return None;
                }
                self.metrics.looked_up(CacheStatus::Negative);
                self.unknown_ids.add(now.0, link.domain, client.ip);
                return Some(Plainly::Unknown(kind, body));
            }
            Held::Stale | Held::Nothing => return None,
        };
        if withheld.target(location.as_bytes()).is_some() {
            return None;
        }
        self.metrics.looked_up(CacheStatus::Hit);
        if !is_head {
            let Sent { agent, referer, language, .. } = *sent;
            let (ip, domain, folded) = (client.ip, link.domain, &link.folded);
            let asked = Asked { ip, path, query: None, domain, folded, agent, referer, language, link: None };
            self.recorder.record(&asked, now, None);
        }
        Some(Plainly::To(location, RedirectHead { status, max_age: link.domain.redirect_max_age }))
    }

    /// Whether an address is that of a proxy, so that the client is another.
    pub(crate) fn is_proxy(&self, ip: std::net::IpAddr) -> bool {
        self.config.trusted_proxies.trust(ip)
    }

    /// What a connection says in `Strict-Transport-Security`.
    pub(crate) fn strict_transport(&self, is_tls: bool) -> Option<&'static str> {
        is_tls.then_some(response::strict_transport(self.config.strict_transport))
    }
}
