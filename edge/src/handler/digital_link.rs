//! Requests for GS1 Digital Links: their levels are looked up here, and the crate `resolver` answers.

use std::sync::Arc;

use digital_link::{Asked, DigitalLink, DigitalLinkError, Level};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use resolver::Resolved;
use shared::{
    digital_link::SerialMode, problem::Code, redirect::RedirectKey, short_url::ShortDomain,
    wire::scan::ScannedLink,
};

use super::{App, Asking, Next, Site};
use crate::{
    backing::Backing,
    cache::{CacheStatus, Found, Held, KeyRef, Served},
    connection::Client,
    domains::Table,
    framing::Sent,
    redirect_head::RedirectHead,
    response::{self, Body},
};

/// A link that is asked for by a Digital Link.
#[derive(Clone, Copy)]
pub(super) struct Linked<'a> {
    pub(super) scanned: &'a ScannedLink,
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
        match self.levels(of, &asked, &seen) {
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

    /// The levels that have links, the most specific first and the GTIN last.
    fn levels(
        &self,
        of: LinkRequest<'_>,
        asked: &Asked<'_>,
        seen: &[(RedirectKey, Found)],
    ) -> Result<Vec<Arc<Served>>, NoLevel> {
        let product = self.level(of, &asked.product(), seen)?;
        // Its lots or items may have links where it has none itself.
        let mode = product.as_ref().and_then(|product| product.record.digital_link.as_ref());
        let mode = mode.map_or(SerialMode::Overrides, |set| set.serial_mode);
        let mut levels = Vec::new();
        for id in asked.levels(mode) {
            levels.extend(self.level(of, &id, seen)?);
        }
        levels.extend(product);
        if levels.is_empty() { Err(NoLevel::Unknown) } else { Ok(levels) }
    }

    /// One level, if it has links.
    fn level(&self, of: LinkRequest<'_>, id: &str, seen: &[(RedirectKey, Found)]) -> Result<Found, NoLevel> {
        let LinkRequest { domain, table, .. } = of;
        let key = KeyRef { domain: domain.host.as_str(), folded: id };
        if let Some(code) = table.withheld.link(domain.account.as_ref(), key) {
            return Err(NoLevel::Withheld(code));
        }
        let found = match seen.iter().find(|(seen, _)| *seen.folded == *id) {
            Some((_, found)) => found.clone(),
            None => {
                let (found, status) = match self.cache.held_links(key) {
                    Held::Present(served) => (Some(served), CacheStatus::Hit),
                    Held::Absent => (None, CacheStatus::Negative),
                    Held::Stale | Held::Nothing => {
                        return Err(NoLevel::Missing(RedirectKey::new(key.domain, id)));
                    }
                };
                // Once for a request: after a fetch it is looked up again.
                if seen.is_empty() {
                    self.metrics.looked_up(status);
                }
                found
            }
        };
        Ok(found.filter(|served| served.record.digital_link.is_some()))
    }

    fn resolve<'a>(&self, of: LinkRequest<'a>, asked: &Asked<'a>, levels: &'a [Arc<Served>]) -> Next {
        let LinkRequest { client, request, sent, path, domain, table } = of;
        let site = Site { domain, withheld: &table.withheld };
        let level = |served: &'a Arc<Served>| Level::of(&served.key.folded, &served.record);
        let given: Vec<Level<'a>> = levels.iter().filter_map(level).collect();
        let brand = || site.withheld.brand(domain);
        let is_blocked = |url: &[u8]| site.withheld.target(url).is_some();
        let place = resolver::Site { domain, brand: &brand, is_blocked: &is_blocked };
        let now = self.clock.now();
        let answer = match resolver::resolve(asked, &given, place, now) {
            Resolved::Links(answer) => return Next::Answer(answer.map(Body::of)),
            Resolved::Choice { level, answer } => {
                let scanned = asked.scanned(None, &given);
                let link = Some(Linked { scanned: &scanned, path, is_default: false });
                if let Some(served) = levels.get(level) {
                    let asking = Asking { client, request, sent, site, link };
                    self.record(&asking, &served.key.folded, Some(now), None);
                }
                return Next::Answer(answer.map(Body::of));
            }
            Resolved::To { level, location, link_type, is_default } => {
                let scanned = asked.scanned(Some(&link_type), &given);
                let link = Some(Linked { scanned: &scanned, path, is_default });
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

/// The path of the item whose EPC is the one segment of a path.
pub(super) fn epc(domain: &ShortDomain, path: &str) -> Option<String> {
    let segment = path.strip_prefix('/').filter(|_| domain.digital_links)?;
    DigitalLink::from_epc(segment).map(|link| link.path())
}

fn opened(mut answer: Response<Body>) -> Next {
    resolver::open(answer.headers_mut());
    Next::Answer(answer)
}
