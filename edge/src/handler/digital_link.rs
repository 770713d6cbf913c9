//! Requests for GS1 Digital Links: their levels are looked up here, and the crate `resolver` answers.

use std::sync::Arc;

use digital_link::{Asked, DigitalLink, DigitalLinkError, Form, Lead, Level, counted};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use resolver::Resolved;
use shared::{
    digital_link::SerialMode, problem::Code, redirect::RedirectKey, short_url::ShortDomain, time::UnixMillis,
    wire::spooled::NewLink,
};

use super::{App, Asking, Next, Site, plain::Plainly};
use crate::{
    backing::Backing,
    cache::{CacheStatus, Found, Held, KeyRef, Served},
    connection::Client,
    domains::Table,
    framing::Sent,
    metrics::Metrics,
    redirect_head::RedirectHead,
    response::{self, Body},
};

/// A link that is asked for by a Digital Link.
#[derive(Clone, Copy)]
pub(super) struct Linked<'a> {
    pub(super) scanned: NewLink<'a>,
    /// Its path, which is not that of the request where a tag has the EPC of the item.
    pub(super) path: &'a str,
    /// No type of link was asked for: rules may decide.
    pub(super) is_default: bool,
}

/// Levels of a Digital Link that were looked up, and one that is not held.
pub(super) struct Missing {
    path: Box<str>,
    domain: Arc<ShortDomain>,
    seen: Vec<(RedirectKey, Found)>,
    key: RedirectKey,
}

/// A redirect of a Digital Link.
pub(super) struct LedTo {
    location: HeaderValue,
    head: RedirectHead,
    /// The value of `Link`.
    link: HeaderValue,
}

impl LedTo {
    /// The answer; `headers` are those of the request, as in [`response::redirect`].
    pub(super) fn answer(self, headers: HeaderMap) -> Response<Body> {
        let mut answer = response::redirect(headers, self.location, self.head);
        resolver::redirected(answer.headers_mut(), self.link);
        answer
    }
}

/// Why there are no levels to choose from.
enum NoLevel {
    /// This one is not held.
    Missing(RedirectKey),
    /// The platform operator withholds one.
    Withheld(Code),
    /// Nobody has this GTIN here.
    Unknown,
}

/// Where levels are looked up.
#[derive(Clone, Copy)]
struct Search<'a> {
    domain: &'a ShortDomain,
    table: &'a Table,
    /// Levels that were fetched already.
    seen: &'a [(RedirectKey, Found)],
}

/// What look-ups of levels found.
#[derive(Default)]
struct Lookups {
    hits: u8,
    absent: u8,
}

impl Lookups {
    fn count(&self, metrics: &Metrics) {
        (0..self.hits).for_each(|_| metrics.looked_up(CacheStatus::Hit));
        (0..self.absent).for_each(|_| metrics.looked_up(CacheStatus::Negative));
    }
}

/// A request on the path of a Digital Link.
#[derive(Clone, Copy)]
pub(super) struct LinkRequest<'a> {
    pub(super) client: Client,
    pub(super) request: &'a Request<Incoming>,
    pub(super) sent: &'a Sent<'a>,
    /// The path of the link, raw.
    pub(super) path: &'a str,
    pub(super) domain: &'a Arc<ShortDomain>,
    pub(super) table: &'a Table,
}

impl<B: Backing> App<B> {
    /// Answers where there is no short id: a tag may have the EPC of an item there.
    pub(super) fn absent(&self, of: LinkRequest<'_>) -> Next {
        match epc(of.domain, of.path) {
            Some(path) => self.digital_link(LinkRequest { path: &path, ..of }, Vec::new()),
            None => {
                self.unknown_ids.add(self.clock.now().0, of.domain, of.client.ip);
                Next::Unknown(of.table.withheld.brand(of.domain))
            }
        }
    }

    /// Answers, unless a level has to be fetched; `seen` are levels that were fetched already.
    pub(super) fn digital_link(&self, of: LinkRequest<'_>, seen: Vec<(RedirectKey, Found)>) -> Next {
        let LinkRequest { client, request, sent, path, domain, table } = of;
        let errors = || self.errors_on(sent, domain, &table.withheld);
        let asked = match Asked::read(path, request.uri().query(), sent.accept, sent.language) {
            Ok(asked) if *request.method() == Method::OPTIONS => {
                return Next::Answer(resolver::options(&asked, domain).map(Body::of));
            }
            Ok(asked) => asked,
            Err(DigitalLinkError::NoKey) => return opened(errors().plain(Code::NoSuchPath)),
            Err(fault) => return opened(errors().with(Code::Invalid, vec![format!("url: {fault}")])),
        };
        let mut lookups = Lookups::default();
        let levels = self.levels(Search { domain, table, seen: &seen }, &asked, &mut lookups);
        // Once for a request: after a fetch they are looked up again.
        if seen.is_empty() {
            lookups.count(&self.metrics);
        }
        match levels {
            Ok(levels) => self.resolve(of, &asked, &levels),
            Err(NoLevel::Unknown) => {
                self.unknown_ids.add(self.clock.now().0, domain, client.ip);
                opened(errors().unknown(HeaderMap::new()))
            }
            Err(NoLevel::Withheld(code)) => opened(errors().closed_or_withheld(code)),
            Err(NoLevel::Missing(key)) => {
                Next::Level(Box::new(Missing { path: path.into(), domain: domain.clone(), seen, key }))
            }
        }
    }

    /// Fetches the level that is missing, and goes on.
    pub(super) async fn fetch_level(
        &self,
        client: Client,
        request: &Request<Incoming>,
        missing: Missing,
    ) -> Next {
        let (sent, Missing { path, domain, mut seen, key }) = (Sent::read(request.headers()), missing);
        let found = match self.fetch_key(client, &key).await {
            Ok(found) => found,
            Err(code) => return opened(self.errors(sent.accept).plain(code)),
        };
        seen.push((key, found));
        let table = self.domains.load();
        let (sent, path, domain, table) = (&sent, &*path, &domain, &**table);
        let of = LinkRequest { client, request, sent, path, domain, table };
        self.digital_link(of, seen)
    }

    /// The redirect of a plain request on the path of a Digital Link, which is recorded then; `None` when it needs anything
    /// else, and nothing is counted or recorded.
    pub(super) fn digital_link_plainly(
        &self,
        (client, is_head): (Client, bool),
        (path, sent): (&str, &Sent<'_>),
        (table, domain): (&Table, &Arc<ShortDomain>),
        now: UnixMillis,
    ) -> Option<Plainly> {
        if self.asks_more(domain) {
            return None;
        }
        let Sent { accept, agent, referer, language, .. } = *sent;
        let asked = Asked::read(path, None, accept, language).ok()?;
        let mut lookups = Lookups::default();
        let levels = self.levels(Search { domain, table, seen: &[] }, &asked, &mut lookups).ok()?;
        let given = given(&levels);
        let lead = if asked.form() == Form::Redirect { asked.lead(&given, now) } else { Lead::Nothing };
        let Lead::To { level, link: chosen, location, .. } = lead else { return None };
        let served = levels.get(counted(&given, level))?;
        // What is open may depend on the time, and on how often it was scanned. Records are checked for printable targets.
        if served.record.availability.is_some()
            || table.withheld.target(location.as_bytes()).is_some()
            || !location.bytes().fold(true, |all, byte| all & byte.is_ascii_graphic())
        {
            return None;
        }
        lookups.count(&self.metrics);
        if !is_head {
            let (ip, folded, link) =
                (client.ip, &*served.key.folded, Some(asked.scanned(&chosen.link_type, &given)));
            let scan = scans::Asked { ip, path, query: None, domain, folded, agent, referer, language, link };
            self.recorder.record(&scan, now, None);
        }
        let (status, link) = (served.record.status_code, resolver::link_text(&asked, domain));
        Some(Plainly::Linked { location, status, link })
    }

    /// The levels that have links, the most specific first and the GTIN last.
    fn levels(
        &self,
        search: Search<'_>,
        asked: &Asked<'_>,
        lookups: &mut Lookups,
    ) -> Result<Vec<Arc<Served>>, NoLevel> {
        let product = self.level(search, &asked.product(), lookups)?;
        // Its lots or items may have links where it has none itself.
        let mode = product.as_ref().and_then(|product| product.record.digital_link.as_ref());
        let mode = mode.map_or(SerialMode::Overrides, |set| set.serial_mode);
        let mut levels = Vec::new();
        for id in asked.levels(mode) {
            levels.extend(self.level(search, &id, lookups)?);
        }
        levels.extend(product);
        if levels.is_empty() { Err(NoLevel::Unknown) } else { Ok(levels) }
    }

    /// One level, if it has links.
    fn level(&self, search: Search<'_>, id: &str, lookups: &mut Lookups) -> Result<Found, NoLevel> {
        let Search { domain, table, seen } = search;
        let key = KeyRef { domain: domain.host.as_str(), folded: id };
        if let Some(code) = table.withheld.link(domain.account.as_ref(), key) {
            return Err(NoLevel::Withheld(code));
        }
        let found = match seen.iter().find(|(seen, _)| *seen.folded == *id) {
            Some((_, found)) => found.clone(),
            None => {
                let found = match self.cache.held_links(key) {
                    Held::Present(served) => Some(served),
                    Held::Absent => None,
                    Held::Stale | Held::Nothing => {
                        return Err(NoLevel::Missing(RedirectKey::new(key.domain, id)));
                    }
                };
                *if found.is_some() { &mut lookups.hits } else { &mut lookups.absent } += 1;
                found
            }
        };
        Ok(found.filter(|served| served.record.digital_link.is_some()))
    }

    fn resolve<'a>(&self, of: LinkRequest<'a>, asked: &Asked<'a>, levels: &'a [Arc<Served>]) -> Next {
        let LinkRequest { client, request, sent, path, domain, table } = of;
        let site = Site { domain, withheld: &table.withheld };
        let given = given(levels);
        let brand = || site.withheld.brand(domain);
        let is_blocked = |url: &[u8]| site.withheld.target(url).is_some();
        let place = resolver::Site { domain, brand: &brand, is_blocked: &is_blocked };
        let now = self.clock.now();
        let answer = match resolver::resolve(asked, &given, place, now) {
            Resolved::Links(answer) => return Next::Answer(answer.map(Body::of)),
            Resolved::Choice { level, answer } => {
                let link = Some(Linked { scanned: asked.scanned("", &given), path, is_default: false });
                if let Some(served) = levels.get(level) {
                    let asking = Asking { client, request, sent, site, link };
                    self.record(&asking, &served.key.folded, Some(now), None);
                }
                return Next::Answer(answer.map(Body::of));
            }
            Resolved::To { level, location, link_type, is_default } => {
                let scanned = asked.scanned(link_type, &given);
                let link = Some(Linked { scanned, path, is_default });
                let asking = Asking { client, request, sent, site, link };
                let Some(served) = levels.get(level) else {
                    return Next::Answer(self.errors(sent.accept).plain(Code::Internal));
                };
                let (key, record) = (served.key.clone(), served.record.clone());
                match self.redirect(&asking, &Served { key, record, location }) {
                    // The next visitor may be led elsewhere.
                    Next::Redirect(location, head) => {
                        let (head, link) =
                            (RedirectHead { max_age: None, ..head }, resolver::link_value(asked, domain));
                        return Next::Led(Box::new(LedTo { location, head, link }));
                    }
                    Next::Answer(answer) => answer,
                    next => return next,
                }
            }
            Resolved::Nothing => {
                let fault = "linkType: there is no link of this type".to_owned();
                self.errors_on(sent, domain, site.withheld).with(Code::NoSuchPath, vec![fault])
            }
        };
        opened(answer)
    }
}

fn given(levels: &[Arc<Served>]) -> Vec<Level<'_>> {
    levels.iter().filter_map(|served| Level::of(&served.key.folded, &served.record)).collect()
}

/// The path of the item whose EPC is the one segment of a path.
pub(super) fn epc(domain: &ShortDomain, path: &str) -> Option<String> {
    let segment = path.strip_prefix('/').filter(|_| domain.digital_links)?;
    DigitalLink::from_epc(segment).map(|link| link.path())
}

fn opened(mut answer: Response<Body>) -> Next {
    resolver::open(answer.headers_mut());
    Next::Answer(answer)
}
