//! Redirects: which target, and its record.

use std::sync::Arc;

use http::{HeaderValue, Method, Request};
use hyper::body::Incoming;
use scans::{Asked, Fired, RuleName};
use shared::{short_url::ShortDomain, time::UnixMillis};

use super::{App, Next, Site};
use crate::{
    backing::Backing,
    cache::Served,
    connection::Client,
    framing::Sent,
    route,
    rules::{RequestFacts, Sources},
};

/// Facts about a redirect once its target is known.
pub(super) struct Led<'a> {
    /// The folded short id.
    pub(super) folded: &'a str,
    pub(super) forward_query: bool,
    /// The rule that decided.
    pub(super) rule: Option<Arc<RuleName>>,
    /// When, if that was asked for.
    pub(super) at: Option<UnixMillis>,
}

impl<B: Backing> App<B> {
    /// Redirects as rules decide, else to the link's own target.
    pub(super) fn redirect(
        &self,
        client: Client,
        request: &Request<Incoming>,
        sent: &Sent<'_>,
        site: Site<'_>,
        served: &Served,
    ) -> Next {
        let mut at = None;
        let decided = site.domain.account.as_ref().and_then(|account| {
            self.cache.with_rules(account, |rules| {
                let now = *at.insert(self.clock.now());
                let sources = Sources { agents: &self.agents, geo: &*self.config.geo };
                rules.decide(&RequestFacts::new(served, request.headers(), client.ip, now, sources))
            })
        });
        let (rule, target) = match decided.flatten() {
            None => (None, served.location.clone()),
            Some((rule, target)) => (Some(rule), target),
        };
        let led = Led { folded: &served.key.folded, forward_query: served.record.forward_query, rule, at };
        self.lead(client, request, sent, site, led, target)
    }

    /// Whether an account's rules may decide.
    pub(super) fn has_rules(&self, domain: &ShortDomain) -> bool {
        domain.account.as_ref().is_some_and(|account| self.cache.with_rules(account, |_| ()).is_some())
    }

    /// Redirects to a target, and records it; not to one whose host is withheld.
    pub(super) fn lead(
        &self,
        client: Client,
        request: &Request<Incoming>,
        sent: &Sent<'_>,
        site: Site<'_>,
        led: Led<'_>,
        target: HeaderValue,
    ) -> Next {
        if let Some(code) = site.withheld.target(target.as_bytes()) {
            return Next::Answer(self.errors(sent.accept).withheld(code));
        }
        let location = match request.uri().query().filter(|_| led.forward_query) {
            None => target,
            Some(query) => {
                // Both parts are printable ASCII, so neither conversion fails; the target alone would do.
                let location = route::forward_query(target.to_str().unwrap_or_default(), query);
                HeaderValue::try_from(location).unwrap_or(target)
            }
        };
        if *request.method() == Method::GET {
            let fired = led.rule.map(|rule| Fired { rule, location: location.clone() });
            let at = led.at.unwrap_or_else(|| self.clock.now());
            let (uri, folded, domain) = (request.uri(), led.folded, site.domain);
            let Sent { agent, referer, language, .. } = *sent;
            let (path, query) = (uri.path(), uri.query());
            let asked = Asked { ip: client.ip, path, query, domain, folded, agent, referer, language };
            self.recorder.record(&asked, at, fired.as_ref());
        }
        Next::Redirect(location)
    }
}
