//! Where a scan of a Digital Link of a product leads, and why. Nothing is written, and no scan is counted.
//!
//! The records are those that an edge reads, and the crate `digital_link` decides, as on an edge.

use std::collections::HashMap;

use catalog::domain::resource::Product;
use digital_link::{Asked, ChosenBy, Form, Lead, Level, counted};
use kernel::{
    domain::{
        grant::Grant,
        permission::{
            Subject::{Products, Redirections},
            Verb,
        },
    },
    error::{CommonError, ServiceError},
    service::{
        Core,
        access::{Caller, require},
        named,
    },
    store::Conn,
};
use redirects::{
    domain::{assumed_scan::AssumedScan, preview::DecidedBy, redirection::Redirection, withheld::TakeDown},
    service::redirections::{DomainChoice, Preview, ShownRule, blocked_hosts, preview_of, resolve_domain},
    store::{redirections as table, withheld},
};
use shared::{
    digital_link::{SerialMode, TypedLink},
    forwarding::MAX_URI,
    id::AccountId,
    problem::Code,
    redirect::{Redirect, RedirectKey},
    short_url::ShortDomain,
};
use tenants::store::accounts;
use tracing::instrument;

use crate::{
    domain::{assumed_request::AssumedRequest, plan},
    error::DigitalLinksError,
};

/// What an edge answers to a request for a Digital Link, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkPreview {
    /// The Digital Link with its query.
    pub url: String,
    /// The status of the answer.
    pub status: u16,
    /// The error of the answer, if it is one.
    pub code: Option<Code>,
    /// Where the request is led.
    pub location: Option<String>,
    /// What decides.
    pub by: LinkDecision,
    /// The link that was chosen. A rule may lead elsewhere.
    pub link: Option<ShownLink>,
    /// The links that the answer lists.
    pub links: Vec<ShownLink>,
    /// The short id of the record for which the scan counts, if it is recorded.
    pub counts_for: Option<String>,
    /// Whether the serial was issued, where that is known.
    pub known: Option<bool>,
    /// The rules that were tried, in their order. If a rule decides, it is the last one.
    pub tried: Vec<ShownRule>,
    /// What was taken down: a level, or the host of the target.
    pub taken_down: Option<TakeDown>,
}

/// A link of a level, as an answer shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLink {
    /// The short id of the level.
    pub level: String,
    /// The link.
    pub link: TypedLink,
    /// Its target, the tags replaced.
    pub href: String,
}

/// What decides what a request for a Digital Link is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkDecision {
    /// This link leads, and why.
    Link(ChosenBy),
    /// A rule, the page for copies, or a take-down, as for short ids.
    Redirect(DecidedBy),
    /// Several links fit, and none better than the others.
    Several,
    /// All links are asked for.
    All,
    /// No level has a link of the type.
    NoLink,
    /// The GTIN leads nowhere on the domain.
    Unknown,
    /// The domain does not resolve Digital Links.
    Domain,
}

impl LinkDecision {
    /// As answers name it. What decides for a link is named as the member of the request.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Link(ChosenBy::Default) => "default",
            Self::Link(ChosenBy::LinkType) => "linkType",
            Self::Link(ChosenBy::MediaType) => "accept",
            Self::Link(ChosenBy::Language) => "acceptLanguage",
            Self::Link(ChosenBy::Context) => "context",
            Self::Redirect(by) => by.as_str(),
            Self::Several => "several",
            Self::All => "all",
            Self::NoLink => "noLink",
            Self::Unknown => "unknown",
            Self::Domain => "domain",
        }
    }
}

impl LinkPreview {
    fn new(url: String, status: u16, by: LinkDecision) -> Self {
        Self {
            url,
            status,
            code: None,
            location: None,
            by,
            link: None,
            links: Vec::new(),
            counts_for: None,
            known: None,
            tried: Vec::new(),
            taken_down: None,
        }
    }

    /// A link that was chosen, and what became of it.
    fn led(url: String, led: Preview, by: ChosenBy) -> Self {
        let Preview { location, code, tried, taken_down, .. } = led;
        let status = code.map_or(led.redirect_status.as_u16(), Code::status);
        let is_link = led.by == DecidedBy::Target;
        let by = if is_link { LinkDecision::Link(by) } else { LinkDecision::Redirect(led.by) };
        Self { location, code, tried, taken_down, ..Self::new(url, status, by) }
    }

    fn refused(url: String, code: Code, by: LinkDecision) -> Self {
        Self { code: Some(code), ..Self::new(url, code.status(), by) }
    }
}

/// Where a scan of a Digital Link of a product leads, as an edge decides it: on the domain that is named, else on the first one of
/// the account that resolves Digital Links.
///
/// # Errors
/// 404 for a product that the caller does not see, 409 where it has no GTIN or the account no domain; 400 for a GTIN or domain of
/// somebody else, attributes in the query that break the rules of GS1, and what is assumed of a Thng that there is not.
#[instrument(skip_all)]
pub async fn preview(
    core: &Core,
    caller: &Caller,
    reference: &str,
    domain: Option<&str>,
    request: &AssumedRequest,
) -> Result<LinkPreview, ServiceError> {
    let of_product = require(caller, Verb::Read, Products)?;
    let grant = require(caller, Verb::Read, Redirections)?;
    let mut conn = core.db.read().await?;
    let product: Product = named::find(&mut conn, caller, &of_product, reference).await?;
    let (path, query) = (path_of(&product, request)?, request.query());
    let accept = request.accept.as_deref().map(str::as_bytes);
    let language = request.scan.accept_language.as_deref().map(str::as_bytes);
    let asked = Asked::read(&path, query.as_deref(), accept, language)
        .map_err(|fault| CommonError::Faults(vec![format!("query: {fault}.")]))?;
    let domain = domain_of(&mut conn, caller.account, domain).await?;
    let behind = query.as_deref().map(|query| format!("?{query}")).unwrap_or_default();
    if path.len() + behind.len() > MAX_URI {
        let fault = format!("query: path and query have at most {MAX_URI} bytes together.");
        return Err(CommonError::Faults(vec![fault]).into());
    }
    let url = format!("{}://{}{path}{behind}", domain.scheme.as_str(), domain.host);
    if !domain.digital_links {
        return Ok(LinkPreview::refused(url, Code::NoSuchPath, LinkDecision::Domain));
    }
    let (records, keys) = levels(&mut conn, caller.account, &grant, &domain, &asked).await?;
    let take_downs = withheld::take_downs(&mut conn, &keys.iter().collect::<Vec<_>>(), &[]).await?;
    if let Some(take_down) = keys.iter().find_map(|key| take_downs.of_link(key)) {
        let by = LinkDecision::Redirect(DecidedBy::TakeDown);
        let taken_down = Some(take_down.clone());
        return Ok(LinkPreview { taken_down, ..LinkPreview::refused(url, Code::TakenDown, by) });
    }
    if records.is_empty() {
        return Ok(LinkPreview::refused(url, Code::ShortIdUnknown, LinkDecision::Unknown));
    }
    let given: Vec<Level<'_>> =
        records.iter().filter_map(|record| Level::of(record.short_id.as_str(), record)).collect();
    let known = asked.scanned("", &given).known;
    let now = request.scan.time.unwrap_or_else(|| core.clock.now());
    match asked.form() {
        Form::Redirect => {}
        Form::Linkset(_) | Form::Page => {
            let of = |level: &Level<'_>| -> Vec<ShownLink> {
                level.open_links(now).map(|link| shown(&asked, &given, level, link)).collect()
            };
            let links = without_blocked(&mut conn, given.iter().flat_map(of).collect()).await?;
            return Ok(LinkPreview { links, known, ..LinkPreview::new(url, 200, LinkDecision::All) });
        }
    }
    let counts_for = |level: usize| given.get(counted(&given, level)).map(|level| level.id.to_owned());
    match asked.lead(&given, now) {
        Lead::Nothing => {
            let refused = LinkPreview::refused(url, Code::NoSuchPath, LinkDecision::NoLink);
            Ok(LinkPreview { known, ..refused })
        }
        Lead::Several { level, links } => {
            let of = |link| Some(shown(&asked, &given, given.get(level)?, link));
            let links = without_blocked(&mut conn, links.into_iter().filter_map(of).collect()).await?;
            let several = LinkPreview::new(url, 300, LinkDecision::Several);
            Ok(LinkPreview { links, known, counts_for: counts_for(level), ..several })
        }
        Lead::To { level, link, by, location } => {
            let record = records.get(counted(&given, level)).cloned();
            let record =
                record.ok_or_else(|| ServiceError::Internal("a level without a record".to_owned()))?;
            let record = Redirect { target: location.as_str().into(), ..record };
            let scan = AssumedScan { query: query.clone(), ..request.scan.clone() };
            let is_default = asked.is_default();
            let led = preview_of(core, &mut conn, caller, &domain, record, &scan, is_default).await?;
            // Nobody is led there, so no scan is recorded.
            let counts_for = counts_for(level).filter(|_| led.by != DecidedBy::TakeDown);
            let link = given.get(level).map(|of| shown(&asked, &given, of, link));
            Ok(LinkPreview { link, counts_for, known, ..LinkPreview::led(url, led, by) })
        }
    }
}

/// The path that is asked for, with a GTIN of the product.
fn path_of(product: &Product, request: &AssumedRequest) -> Result<String, ServiceError> {
    let gtins = plan::gtins(product);
    let own = gtins.first().ok_or(DigitalLinksError::NoGtin)?;
    let gtin = request.gtin.as_ref().unwrap_or(own);
    let fault = |text: String| ServiceError::from(CommonError::Faults(vec![text]));
    if !gtins.contains(gtin) {
        return Err(fault(format!("gtin: {gtin} does not lead to this product.")));
    }
    request.path(gtin).map_err(|error| fault(format!("gtin: {error}.")))
}

async fn domain_of(
    conn: &mut Conn,
    account: AccountId,
    named: Option<&str>,
) -> Result<ShortDomain, ServiceError> {
    let named = match named {
        Some(named) => Some(named.to_owned()),
        None => {
            let domains = accounts::list_domains(conn, account).await?;
            domains.into_iter().find(|domain| domain.digital_links).map(|domain| domain.host.to_string())
        }
    };
    resolve_domain(conn, account, &DomainChoice { named, host: None }, None).await
}

/// The records of the levels that have links, the most specific first and the GTIN last; and the keys of all levels at which an
/// edge looks.
///
/// # Errors
/// 404 for a record that the caller does not see.
async fn levels(
    conn: &mut Conn,
    account: AccountId,
    grant: &Grant,
    domain: &ShortDomain,
    asked: &Asked<'_>,
) -> Result<(Vec<Redirect>, Vec<RedirectKey>), ServiceError> {
    let (host, product) = (domain.host.as_str(), asked.product().into_owned());
    // Of items too: the record of the product says whether they count.
    let mut ids = asked.levels(SerialMode::Known);
    ids.push(product.clone());
    let found = table::find_many(conn, host, &ids, account).await?;
    let by_id = |item: Redirection| (item.redirect.short_id.to_string(), item);
    let mut found: HashMap<String, Redirection> = found.into_iter().map(by_id).collect();
    let of_product = found.get(&product).and_then(|item| item.redirect.digital_link.as_ref());
    // As on an edge: lots and items may have links where their product has none.
    let mut ids = asked.levels(of_product.map_or(SerialMode::Overrides, |set| set.serial_mode));
    ids.push(product);
    let keys = ids.iter().map(|id| RedirectKey::new(host, id)).collect();
    let mut records = Vec::with_capacity(ids.len());
    for id in &ids {
        let Some(item) = found.remove(id).filter(|item| item.redirect.digital_link.is_some()) else {
            continue;
        };
        if !grant.admits("", Some(&item.scopes)) {
            return Err(ServiceError::not_found("redirection", id));
        }
        records.push(item.redirect);
    }
    Ok((records, keys))
}

fn shown(asked: &Asked<'_>, given: &[Level<'_>], level: &Level<'_>, link: &TypedLink) -> ShownLink {
    let href = asked.target(given, level, link);
    ShownLink { level: level.id.to_owned(), link: link.clone(), href }
}

/// The links but those to hosts that were taken down.
async fn without_blocked(conn: &mut Conn, mut links: Vec<ShownLink>) -> Result<Vec<ShownLink>, ServiceError> {
    let blocked = blocked_hosts(conn, links.iter().map(|link| link.href.as_str())).await?;
    links.retain(|link| blocked.of_target(&link.href).is_none());
    Ok(links)
}
