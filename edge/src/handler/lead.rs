//! Redirects: which target, and its record.

use std::sync::Arc;

use http::{HeaderValue, Method};
use scans::{Asked, Fired, RuleName};
use shared::{
    availability::Closed, forwarding::forward_query, problem::Code, short_url::ShortDomain, time::UnixMillis,
    user_agent::Device,
};

use super::{App, Asking, Next};
use crate::{
    backing::Backing,
    cache::Served,
    framing::Sent,
    redirect_head::RedirectHead,
    rules::{AskedLink, RequestFacts, Sources},
};

/// Facts about a redirect once its target is known.
pub(super) struct Led<'a> {
    /// The folded short id.
    pub(super) folded: &'a str,
    pub(super) forward_query: bool,
    /// The link, if its scans are limited: then this one counts.
    pub(super) limited: Option<&'a Served>,
    /// The rule that decided.
    pub(super) rule: Option<Arc<RuleName>>,
    /// When, if that was asked for.
    pub(super) at: Option<UnixMillis>,
    /// Status code and age of the answer.
    pub(super) head: RedirectHead,
}

impl<B: Backing> App<B> {
    /// Redirects as rules decide, else to the link's own target; while the link is closed to its ended page, if it has one.
    ///
    /// An item that may be a copy leads nowhere if its account wants so, but where a rule leads it.
    ///
    /// Where a rule or the ended page decides, the answer holds for this request alone: it is 307, whatever the link says. Where
    /// there are rules it is kept by nobody, because the next visitor may be led elsewhere.
    pub(super) fn redirect(&self, asking: &Asking<'_>, served: &Served) -> Next {
        let Asking { client, request, site, .. } = *asking;
        let mut at = None;
        if served.record.availability.is_some() {
            let now = *at.insert(self.clock.now());
            if let Some(why) = self.why_closed(served, now) {
                return self.closed(asking, served, why, now);
            }
        }
        // Whoever asks for a type of link gets one of it.
        let by_rules = asking.link.is_none_or(|link| link.is_default);
        let decided = site.domain.account.as_ref().filter(|_| by_rules).and_then(|account| {
            self.cache.with_rules(account, |rules| {
                let now = *at.get_or_insert_with(|| self.clock.now());
                let sources = Sources { agents: &self.agents, geo: &*self.config.geo };
                let (headers, query) = (request.headers(), request.uri().query());
                let asked = AskedLink { account, headers, query, ip: client.ip, at: now };
                rules.decide(&RequestFacts::new(served, asked, sources))
            })
        });
        let record = &*served.record;
        let limited = Some(served).filter(|served| served.is_limited());
        // What somebody keeps is not counted.
        let max_age = site.domain.redirect_max_age.filter(|_| decided.is_none() && limited.is_none());
        let (rule, target, head) = match decided.flatten() {
            // A host that was taken down comes first, as in the preview of control: `lead` answers for it.
            None if site.domain.stops(&record.standing)
                && site.withheld.target(served.location.as_bytes()).is_none() =>
            {
                self.record(asking, &served.key.folded, at, None);
                return Next::Answer(self.errors_at(asking).closed_or_withheld(Code::SuspectedCopy));
            }
            None => {
                let head = RedirectHead { status: record.status_code, max_age };
                let end = record.availability.as_ref().and_then(|availability| availability.valid_until);
                let head = at.map_or(head, |now| head.until(end, now));
                (None, served.location.clone(), head)
            }
            Some((rule, target)) => (Some(rule), target, RedirectHead::default()),
        };
        let (folded, forward_query) = (&*served.key.folded, record.forward_query || asking.link.is_some());
        let led = Led { folded, forward_query, limited, rule, at, head };
        self.lead(asking, led, target)
    }

    /// Why a link does not lead to its target at a moment.
    pub(super) fn why_closed(&self, served: &Served, now: UnixMillis) -> Option<Closed> {
        if served.is_limited() && self.limits.is_used_up(&served.key, &served.record) {
            return Some(Closed::Ended);
        }
        served.closed(now)
    }

    /// Whether a link whose scans are limited has one left for this request. That of a person counts, as in `hits`.
    fn admits(&self, asking: &Asking<'_>, served: &Served) -> bool {
        let is_robot = || match asking.sent.agent.filter(|agent| !agent.is_empty()) {
            None => true,
            Some(sent) => {
                self.agents.read(sent).as_ref().is_some_and(|agent| agent.device == Some(Device::Robot))
            }
        };
        if *asking.request.method() != Method::GET || is_robot() {
            return !self.limits.is_used_up(&served.key, &served.record);
        }
        self.limits.admit(&served.key, &served.record)
    }

    /// Answers for a link that is closed. A request for a closed link is recorded as a scan.
    fn closed(&self, asking: &Asking<'_>, served: &Served, why: Closed, now: UnixMillis) -> Next {
        let (folded, forward_query) = (&*served.key.folded, served.record.forward_query);
        // It was validated by the same conversion when it was inserted.
        if let Ok(Some(location)) = served.ended_location() {
            let head = RedirectHead::default();
            let led = Led { folded, forward_query, limited: None, rule: None, at: Some(now), head };
            return self.lead(asking, led, location);
        }
        self.record(asking, folded, Some(now), None);
        Next::Answer(self.errors_at(asking).closed_or_withheld(why.code()))
    }

    /// Whether more than its own target decides where a link of a domain leads: rules, or what is known of its item.
    pub(super) fn asks_more(&self, domain: &ShortDomain) -> bool {
        domain.stops_copies() || self.has_rules(domain)
    }

    /// Whether an account's rules may decide.
    fn has_rules(&self, domain: &ShortDomain) -> bool {
        domain.account.as_ref().is_some_and(|account| self.cache.with_rules(account, |_| ()).is_some())
    }

    /// Redirects to a target, and records it; not to one whose host is withheld.
    pub(super) fn lead(&self, asking: &Asking<'_>, led: Led<'_>, target: HeaderValue) -> Next {
        if let Some(code) = asking.site.withheld.target(target.as_bytes()) {
            return Next::Answer(self.errors_at(asking).closed_or_withheld(code));
        }
        if let Some(served) = led.limited
            && !self.admits(asking, served)
        {
            // Others took the last ones since this request was looked at.
            let now = led.at.unwrap_or_else(|| self.clock.now());
            return self.closed(asking, served, Closed::Ended, now);
        }
        let location = match asking.request.uri().query().filter(|_| led.forward_query) {
            None => target,
            Some(query) => {
                // Both parts are printable ASCII, so neither conversion fails; the target alone would do.
                let location = forward_query(target.to_str().unwrap_or_default(), query);
                HeaderValue::try_from(location).unwrap_or(target)
            }
        };
        let fired = led.rule.map(|rule| Fired { rule, location: location.clone() });
        self.record(asking, led.folded, led.at, fired.as_ref());
        Next::Redirect(location, led.head)
    }

    /// Records a GET of a folded short id, as of now unless the time is known already.
    pub(super) fn record(
        &self,
        asking: &Asking<'_>,
        folded: &str,
        at: Option<UnixMillis>,
        fired: Option<&Fired>,
    ) {
        let Asking { client, request, sent, site, link } = *asking;
        if *request.method() != Method::GET {
            return;
        }
        let (uri, domain) = (request.uri(), site.domain);
        let Sent { agent, referer, language, .. } = *sent;
        let (path, query) = (link.map_or(uri.path(), |link| link.path), uri.query());
        let at = at.unwrap_or_else(|| self.clock.now());
        let link = link.map(|link| link.scanned);
        let asked = Asked { ip: client.ip, path, query, domain, folded, agent, referer, language, link };
        self.recorder.record(&asked, at, fired);
    }
}
