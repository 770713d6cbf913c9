//! Redirect rules as the edge holds them, and the request facts they are evaluated on.

use std::{cell::OnceCell, collections::HashMap, net::IpAddr, sync::Arc};

use arc_swap::Guard;
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT_LANGUAGE, USER_AGENT},
};
use scans::RuleName;
use shared::{
    geo::{GeoIp, Locality},
    id::{AccountId, ProjectId},
    redirect::Redirect,
    rules::{AccountRules, Compiled, Facts, Text, first_language, text_of_link},
    target::Template,
    time::UnixMillis,
    wire::scan::{MAX_USER_AGENT, cut},
};

use crate::{
    agents::{Agent, Agents},
    cache::Served,
};

/// The rules of every account that has some.
pub(crate) type RuleTable = HashMap<AccountId, Arc<RuleSet>>;

/// The rules of one account, read and ready to be tried.
#[derive(Debug)]
pub(crate) struct RuleSet(Compiled<EdgeRule>);

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
    compiled.map(RuleSet).map(Some).map_err(|reason| format!("the rules of {}: {reason}", rules.account))
}

impl RuleSet {
    /// The first rule that holds, and where it leads.
    pub(crate) fn decide(&self, facts: &RequestFacts<'_>) -> Option<(Arc<RuleName>, HeaderValue)> {
        let hit = self.0.first(facts)?;
        let location = match &hit.made.destination {
            Destination::Own => facts.served.location.clone(),
            Destination::Fixed(location) => location.clone(),
            // Values of tags are percent-encoded, so the text is a header value.
            Destination::Template(target) => HeaderValue::try_from(facts.served.fill_in(target)).ok()?,
        };
        Some((hit.made.name.clone(), location))
    }
}

/// Facts about one request; expensive ones are computed once, when a rule asks for them.
pub(crate) struct RequestFacts<'a> {
    served: &'a Served,
    headers: &'a HeaderMap,
    ip: IpAddr,
    at: UnixMillis,
    sources: Sources<'a>,
    agent: OnceCell<Guard<Option<Arc<Agent>>>>,
    place: OnceCell<Arc<Locality>>,
    language: OnceCell<Option<&'a str>>,
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
    pub(crate) fn new(
        served: &'a Served,
        headers: &'a HeaderMap,
        ip: IpAddr,
        at: UnixMillis,
        sources: Sources<'a>,
    ) -> Self {
        let (agent, place, language) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { served, headers, ip, at, sources, agent, place, language }
    }

    fn record(&self) -> &Redirect {
        &self.served.record
    }

    fn place(&self) -> &Locality {
        self.place.get_or_init(|| self.sources.geo.find_shared(self.ip))
    }

    fn agent(&self) -> Option<&Agent> {
        let guard = self.agent.get_or_init(|| {
            let sent = self.headers.get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
            // Cut as the scan record is, so that control reads the same names from it.
            let cut = || cut(str::from_utf8(sent).unwrap_or_default(), MAX_USER_AGENT).as_bytes();
            self.sources.agents.read(if sent.len() <= MAX_USER_AGENT { sent } else { cut() })
        });
        guard.as_deref()
    }
}

impl Facts for RequestFacts<'_> {
    fn text(&self, field: Text) -> Option<&str> {
        match field {
            Text::Country => self.place().country_code.as_deref(),
            Text::City => self.place().city.as_deref(),
            Text::AgentName => self.agent()?.name.as_deref(),
            Text::SystemName => self.agent()?.system.as_deref(),
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
        *self.language.get_or_init(|| accepted_language(self.headers).and_then(first_language))
    }

    fn time(&self) -> UnixMillis {
        self.at
    }
}

/// `Accept-Language` as it was sent.
fn accepted_language(headers: &HeaderMap) -> Option<&str> {
    headers.get(ACCEPT_LANGUAGE)?.to_str().ok()
}

#[cfg(test)]
mod tests;
