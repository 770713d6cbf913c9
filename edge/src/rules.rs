//! Redirect rules as the edge holds them, and the request facts they are evaluated on.

use std::{cell::OnceCell, collections::HashMap, net::IpAddr, sync::Arc};

use arc_swap::Guard;
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT_LANGUAGE, HeaderName, REFERER, USER_AGENT},
};
use scans::{Agent, Agents, RuleName};
use shared::{
    geo::{GeoIp, Locality},
    id::{AccountId, ProjectId},
    redirect::Redirect,
    rules::{AccountRules, Compiled, Facts, Text, Visitor, first_language, text_of_link},
    target::Template,
    time::UnixMillis,
    wire::scan::{MAX_USER_AGENT, cut},
};

use crate::cache::Served;

/// The rules of every account that has some.
pub(crate) type RuleTable = HashMap<AccountId, Arc<RuleSet>>;

/// The rules of one account, read and ready to be tried; `None` where this edge cannot use them.
#[derive(Debug)]
pub(crate) struct RuleSet(Option<Compiled<EdgeRule>>);

/// One rule, prepared for redirects.
#[derive(Debug)]
struct EdgeRule {
    /// What scans say of it.
    name: Arc<RuleName>,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    /// Where the redirection leads without rules.
    Own,
    /// The same for every link.
    Fixed(HeaderValue),
    /// With tags, which each link fills in.
    Template(Template),
}

/// Reads the rules of an account; `None` when it has none, the reason when one cannot be used.
pub(crate) fn read(rules: &AccountRules) -> Result<Option<RuleSet>, String> {
    if rules.lists.is_empty() {
        return Ok(None);
    }
    let compiled = Compiled::new(rules, |owner, index, rule, target| {
        let destination = match target {
            None => Destination::Own,
            Some(target) if target.as_str().contains('{') => Destination::Template(target.template()),
            Some(target) => HeaderValue::try_from(target.as_str())
                .map(Destination::Fixed)
                .map_err(|_| "redirectUrl is no header value".to_owned())?,
        };
        let name = RuleName {
            application: owner.map(|owner| owner.application),
            index: u16::try_from(index).unwrap_or(u16::MAX),
            name: rule.name.clone(),
        };
        Ok(EdgeRule { name: Arc::new(name), destination })
    });
    compiled
        .map(|compiled| Some(RuleSet(Some(compiled))))
        .map_err(|reason| format!("the rules of {}: {reason}", rules.account))
}

impl RuleSet {
    /// Rules that cannot be used: none of them decides. But the account has rules, so that nobody may keep its redirects.
    pub(crate) const fn refused() -> Self {
        Self(None)
    }

    pub(crate) const fn is_refused(&self) -> bool {
        self.0.is_none()
    }

    /// The first rule that holds, and where it leads.
    pub(crate) fn decide(&self, facts: &RequestFacts<'_>) -> Option<(Arc<RuleName>, HeaderValue)> {
        let hit = self.0.as_ref()?.first(facts)?;
        let location = match &hit.made.destination {
            Destination::Own => facts.served.location.clone(),
            Destination::Fixed(location) => location.clone(),
            // Values of tags are percent-encoded, so the text is a header value.
            Destination::Template(target) => HeaderValue::try_from(facts.served.fill_in(target)).ok()?,
        };
        Some((hit.made.name.clone(), location))
    }
}

/// A request for a redirection.
#[derive(Clone, Copy)]
pub(crate) struct AskedLink<'a> {
    /// The account whose rules are tried.
    pub(crate) account: &'a AccountId,
    pub(crate) headers: &'a HeaderMap,
    /// The query as sent.
    pub(crate) query: Option<&'a str>,
    pub(crate) ip: IpAddr,
    pub(crate) at: UnixMillis,
}

/// Facts about one request; expensive ones are computed once, when a rule asks for them.
pub(crate) struct RequestFacts<'a> {
    served: &'a Served,
    asked: AskedLink<'a>,
    sources: Sources<'a>,
    agent: OnceCell<Guard<Option<Arc<Agent>>>>,
    locality: OnceCell<Arc<Locality>>,
    language: OnceCell<Option<&'a str>>,
    visitor: OnceCell<Visitor>,
}

/// Facts that the edge has besides the request.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    /// Reads user agents.
    pub(crate) agents: &'a Agents,
    /// Resolves addresses to locations.
    pub(crate) geo: &'a dyn GeoIp,
}

impl<'a> RequestFacts<'a> {
    /// A request for a redirection.
    pub(crate) fn new(served: &'a Served, asked: AskedLink<'a>, sources: Sources<'a>) -> Self {
        let (agent, locality, language) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { served, asked, sources, agent, locality, language, visitor: OnceCell::new() }
    }

    fn record(&self) -> &Redirect {
        &self.served.record
    }

    fn locality(&self) -> &Locality {
        self.locality.get_or_init(|| self.sources.geo.find_shared(self.asked.ip))
    }

    fn agent(&self) -> Option<&Agent> {
        let guard = self.agent.get_or_init(|| {
            let sent = self.user_agent();
            // Cut as the scan record is, so that control reads the same names from it.
            let cut = || cut(str::from_utf8(sent).unwrap_or_default(), MAX_USER_AGENT).as_bytes();
            self.sources.agents.read(if sent.len() <= MAX_USER_AGENT { sent } else { cut() })
        });
        guard.as_deref()
    }

    /// `User-Agent` as it was sent; empty without one.
    fn user_agent(&self) -> &'a [u8] {
        self.asked.headers.get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default()
    }

    /// A header as it was sent; `None` where it is no text.
    fn header(&self, name: HeaderName) -> Option<&'a str> {
        self.asked.headers.get(name)?.to_str().ok()
    }
}

impl Facts for RequestFacts<'_> {
    fn text(&self, field: Text) -> Option<&str> {
        match field {
            Text::Country => self.locality().country_code.as_deref(),
            Text::Region => self.locality().region.as_deref(),
            Text::City => self.locality().city.as_deref(),
            Text::AgentName => self.agent()?.name.as_deref(),
            Text::SystemName => self.agent()?.system.as_deref(),
            Text::Device => Some(self.agent()?.device?.as_str()),
            Text::Thng
            | Text::ThngName
            | Text::Product
            | Text::CommissionState
            | Text::Assessment
            | Text::Counterfeit
            | Text::GrayMarket
            | Text::ActionType
            | Text::ShortDomain
            | Text::ShortId => text_of_link(self.record(), field),
        }
    }

    fn projects(&self) -> &[ProjectId] {
        &self.record().projects
    }

    fn language(&self) -> Option<&str> {
        *self.language.get_or_init(|| self.header(ACCEPT_LANGUAGE).and_then(first_language))
    }

    fn accept_language(&self) -> Option<&str> {
        self.header(ACCEPT_LANGUAGE)
    }

    fn referer(&self) -> Option<&str> {
        self.header(REFERER)
    }

    fn query(&self) -> Option<&str> {
        self.asked.query
    }

    fn address(&self) -> Option<IpAddr> {
        Some(self.asked.ip)
    }

    fn as_number(&self) -> Option<u32> {
        self.locality().as_number
    }

    fn place(&self, division: &str) -> Option<u16> {
        let AskedLink { account, ip, at, .. } = self.asked;
        let visitor = self.visitor.get_or_init(|| Visitor::new(account, at, ip, self.user_agent()));
        Some(visitor.place(division))
    }

    fn time(&self) -> UnixMillis {
        self.asked.at
    }
}

#[cfg(test)]
mod tests;
