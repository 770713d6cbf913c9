//! Where a link would lead a scan: the decision as an edge makes it, and why.

use std::net::IpAddr;

use shared::{
    availability::Closed,
    id::{AccountId, ApplicationId, ProjectId},
    redirect::Redirect,
    rules::{
        AccountRules, Compiled, Explained, Facts, Owner, Rule, Text, Visitor, accepted_languages,
        first_language, query_parameters, referer_host, text_of_link,
    },
    target::Target,
    time::UnixMillis,
    user_agent::{Names, read_names},
    wire::scan::{MAX_USER_AGENT, cut},
};
use woothee::parser::Parser;

use super::assumed_scan::AssumedScan;

/// Every text that a rule may test.
const TEXTS: [Text; 16] = [
    Text::Thng,
    Text::ThngName,
    Text::Product,
    Text::CommissionState,
    Text::Assessment,
    Text::Counterfeit,
    Text::GrayMarket,
    Text::ActionType,
    Text::Country,
    Text::Region,
    Text::City,
    Text::AgentName,
    Text::SystemName,
    Text::Device,
    Text::ShortDomain,
    Text::ShortId,
];

/// Facts of an assumed scan of a link.
#[derive(Debug)]
pub struct AssumedFacts<'a> {
    link: &'a Redirect,
    scan: &'a AssumedScan,
    names: Names<'a>,
    /// Known if the address is.
    visitor: Option<Visitor>,
    at: UnixMillis,
}

impl<'a> AssumedFacts<'a> {
    /// Reads what an edge reads of a request, from the same texts; `account` is that of the link.
    #[must_use]
    pub fn new(
        account: &AccountId,
        link: &'a Redirect,
        scan: &'a AssumedScan,
        agents: &'a Parser,
        at: UnixMillis,
    ) -> Self {
        let sent = scan.user_agent.as_deref().unwrap_or_default();
        let visitor = scan.address.map(|ip| Visitor::new(account, at, ip, sent.as_bytes()));
        Self { link, scan, names: read_names(agents, cut(sent, MAX_USER_AGENT)), visitor, at }
    }

    /// Every fact, to be shown.
    #[must_use]
    pub fn known(&self) -> KnownFacts {
        let text = |field: Text| Some((field, self.text(field)?.to_owned()));
        let mut accepted: Vec<(&str, f64)> =
            accepted_languages(self.accept_language().unwrap_or_default()).collect();
        accepted.retain(|(_, quality)| *quality > 0.0);
        // Those of one quality keep their order.
        accepted.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        KnownFacts {
            texts: TEXTS.into_iter().filter_map(text).collect(),
            projects: self.link.projects.to_vec(),
            language: self.language().map(str::to_owned),
            languages: accepted.into_iter().map(|(tag, _)| tag.to_owned()).collect(),
            referer_host: self.referer().and_then(referer_host).map(str::to_ascii_lowercase),
            query: query_parameters(self.query().unwrap_or_default()),
            address: self.address(),
            as_number: self.as_number(),
            place: self.place(""),
            at: self.at,
        }
    }
}

impl Facts for AssumedFacts<'_> {
    fn text(&self, field: Text) -> Option<&str> {
        match field {
            Text::Country => self.scan.country.as_deref(),
            Text::Region => self.scan.region.as_deref(),
            Text::City => self.scan.city.as_deref(),
            Text::AgentName => self.names.browser,
            Text::SystemName => self.names.system,
            Text::Device => Some(self.names.device?.as_str()),
            Text::Thng
            | Text::ThngName
            | Text::Product
            | Text::CommissionState
            | Text::Assessment
            | Text::Counterfeit
            | Text::GrayMarket
            | Text::ActionType
            | Text::ShortDomain
            | Text::ShortId => text_of_link(self.link, field),
        }
    }

    fn projects(&self) -> &[ProjectId] {
        &self.link.projects
    }

    fn language(&self) -> Option<&str> {
        first_language(self.scan.accept_language.as_deref()?)
    }

    fn accept_language(&self) -> Option<&str> {
        self.scan.accept_language.as_deref()
    }

    fn referer(&self) -> Option<&str> {
        self.scan.referer.as_deref()
    }

    fn query(&self) -> Option<&str> {
        self.scan.query.as_deref()
    }

    fn address(&self) -> Option<IpAddr> {
        self.scan.address
    }

    fn as_number(&self) -> Option<u32> {
        self.scan.as_number
    }

    fn place(&self, division: &str) -> Option<u16> {
        self.scan.place.or_else(|| Some(self.visitor?.place(division)))
    }

    fn time(&self) -> UnixMillis {
        self.at
    }
}

/// What is known of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFacts {
    /// The texts that are known, each once.
    pub texts: Vec<(Text, String)>,
    /// The projects that the redirection's scopes name.
    pub projects: Vec<ProjectId>,
    /// The first language.
    pub language: Option<String>,
    /// Every language that is accepted, the best first.
    pub languages: Vec<String>,
    /// Host of the referer, in lower case.
    pub referer_host: Option<String>,
    /// Parameters of the query with their values, without keys.
    pub query: Vec<(String, String)>,
    /// The client's address.
    pub address: Option<IpAddr>,
    /// The autonomous system that it is in.
    pub as_number: Option<u32>,
    /// The place in the division without a name, in hundredths of a percent.
    pub place: Option<u16>,
    /// When the scan comes.
    pub at: UnixMillis,
}

impl KnownFacts {
    /// One text.
    #[must_use]
    pub fn text(&self, field: Text) -> Option<String> {
        self.texts.iter().find(|(of, _)| *of == field).map(|(_, text)| text.clone())
    }
}

shared::words! {
    /// What decides where a scan is led.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DecidedBy {
        /// A rule, which may keep the link's own target.
        Rule = "rule",
        /// The link's own target: no rule holds.
        Target = "defaultRedirectUrl",
        /// The link is closed, and leads to its ended page.
        EndedUrl = "endedUrl",
        /// The link is closed, and has no ended page.
        Closed = "closed",
        /// No rule holds, and the item may be a copy, for which the account shows a page.
        Copy = "copy",
        /// The link was taken down, or the host that it would lead to.
        TakeDown = "takeDown",
    }
}

/// A rule that was tried for a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Whose list it is in; `None` for the account's own.
    pub owner: Option<Owner>,
    /// Its place in the list, from 0.
    pub index: usize,
    /// The rule.
    pub rule: Rule,
    /// Whether it holds, and why.
    pub explained: Explained,
}

/// Where a scan is led but for take-downs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What decides.
    pub by: DecidedBy,
    /// Why the link is closed, if it is.
    pub closed: Option<Closed>,
    /// Where the scan is led, without the query of the request.
    pub target: Option<String>,
    /// The rules that were tried, in their order. If a rule decides, it is the last one.
    pub tried: Vec<Tried>,
}

/// Decides as an edge does: a closed link asks no rule, and the first rule that holds wins.
///
/// # Errors
/// A rule or a URL of the link cannot be read.
pub fn decide(link: &Redirect, rules: &AccountRules, facts: &AssumedFacts<'_>) -> Result<Decision, String> {
    let expand = |target: &Target| target.expand(&link.tag_values());
    let read = |url: &str| {
        let target = Target::parse(url);
        target
            .map(|target| expand(&target))
            .map_err(|fault| format!("a URL of {}/{}: {fault}", link.domain, link.short_id))
    };
    if let Some(availability) = &link.availability
        && let Some(why) = availability.closed(facts.time())
    {
        let target = availability.ended_url.as_deref().map(read).transpose()?;
        let by = if target.is_some() { DecidedBy::EndedUrl } else { DecidedBy::Closed };
        return Ok(Decision { by, closed: Some(why), target, tried: Vec::new() });
    }
    let compiled = Compiled::new(rules, |_, _, _, target| Ok(target))?;
    let hit = compiled.first(facts);
    let tried = tried(rules, facts, hit.as_ref().map(|hit| (hit.application, hit.index)))?;
    let by = if hit.is_some() { DecidedBy::Rule } else { DecidedBy::Target };
    let target = match hit.and_then(|hit| hit.made.as_ref()) {
        Some(target) => expand(target),
        None => read(&link.target)?,
    };
    Ok(Decision { by, closed: None, target: Some(target), tried })
}

/// The rules that are tried for a scan, up to the one that holds.
fn tried(
    rules: &AccountRules,
    facts: &AssumedFacts<'_>,
    hit: Option<(Option<ApplicationId>, usize)>,
) -> Result<Vec<Tried>, String> {
    let mut tried = Vec::new();
    let is_for = |owner: &Owner| owner.is_of(facts.projects());
    for list in rules.lists.iter().filter(|list| list.owner.as_ref().is_none_or(is_for)) {
        for (index, rule) in list.rules.iter().enumerate() {
            let explained = rule.explain(facts).map_err(|fault| fault.to_string())?;
            tried.push(Tried { owner: list.owner, index, rule: rule.clone(), explained });
            if hit == Some((list.owner.map(|owner| owner.application), index)) {
                return Ok(tried);
            }
        }
    }
    Ok(tried)
}
