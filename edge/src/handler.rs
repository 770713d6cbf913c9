//! Handles a request: route, cache, response. A cache hit never waits.

mod challenge;
mod digital_link;
mod errors;
mod image;
mod lead;
pub(crate) mod plain;
mod record;
mod report;
pub(crate) mod request_ids;

use std::{mem::take, sync::Arc, time::Instant};

use http::{
    HeaderName, HeaderValue, Method, Request, Response, Version,
    header::{ACCEPT, CONNECTION},
};
use hyper::body::Incoming;
use scan_limits::ScanLimits;
use scans::{Agents, Recorder};
use shared::{
    client_address::PROXY_HEADERS, negotiate::Representation, problem::Code, redirect::RedirectKey,
    short_url::ShortDomain, time::Clock,
};
use tokio::task::yield_now;
use visitor_pages::Brand;

use self::{
    digital_link::{LedTo, LinkRequest, Linked, Missing},
    lead::Led,
    request_ids::RequestIds,
};
use crate::{
    TlsCerts,
    backing::{Backing, limiter::Limiter, unknown::UnknownIds},
    cache::{CacheStatus, EdgeCache, Found, Held, KeyRef, Leads, Served},
    config::EdgeConfig,
    connection::{Client, InFlight},
    domains::Domains,
    framing::{self, Sent},
    images::{self, ImageKey, Renderer},
    metrics::{Kind, Metrics},
    proxy::Proxy,
    redirect_head::RedirectHead,
    response::{self, Body, Prepared},
    route::{self, Ask, Route},
    sync::SyncStatus,
    withheld::WithheldLinks,
};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Everything that requests share.
pub(crate) struct App<B> {
    pub(crate) config: Arc<EdgeConfig>,
    pub(crate) domains: Arc<Domains>,
    pub(crate) cache: Arc<EdgeCache>,
    pub(crate) backing: Arc<B>,
    pub(crate) status: Arc<SyncStatus>,
    pub(crate) recorder: Recorder,
    /// Counts scans of links that end after a number of them.
    pub(crate) limits: Arc<ScanLimits>,
    pub(crate) renderer: Renderer,
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) proxy: Proxy,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) agents: Agents,
    pub(crate) ids: RequestIds,
    /// How often ids were asked for that do not exist.
    pub(crate) unknown_ids: Arc<UnknownIds>,
    pub(crate) prepared: Prepared,
    /// What certificate authorities are answered.
    pub(crate) tls: Option<TlsCerts>,
}

/// The domain of a link, and what is withheld as of the same state.
#[derive(Clone, Copy)]
struct Site<'a> {
    domain: &'a ShortDomain,
    withheld: &'a WithheldLinks,
}

/// A request for a link.
#[derive(Clone, Copy)]
struct Asking<'a> {
    client: Client,
    request: &'a Request<Incoming>,
    sent: &'a Sent<'a>,
    site: Site<'a>,
    /// What the Digital Link said, if it is one.
    link: Option<Linked<'a>>,
}

/// What is left to do after routing.
enum Next {
    Answer(Response<Body>),
    /// A redirect to there.
    Redirect(HeaderValue, RedirectHead),
    /// A redirect of a Digital Link.
    Led(Box<LedTo>),
    /// The key is known to be absent; its domain shows this.
    Unknown(Brand),
    /// The key is not held.
    Fetch {
        key: RedirectKey,
        domain: Arc<ShortDomain>,
        representation: Representation,
    },
    /// A level of a Digital Link is not held.
    Level(Box<Missing>),
    /// Control knows what the code of a link says.
    Code(Box<(RedirectKey, ImageKey)>),
    /// The image is not held.
    Render(ImageKey),
    /// A report about the item of a short id, whose domain shows this.
    Report(String, Brand),
    /// Control answers; with another path, or unchanged.
    Proxy(Option<String>),
}

impl<B: Backing> App<B> {
    /// Answers one request.
    pub(crate) async fn answer(
        &self,
        client: Client,
        mut request: Request<Incoming>,
        in_flight: InFlight,
    ) -> Response<Body> {
        let begun = Instant::now();
        let over_tls = client.is_tls;
        let client = self.client(client, &request);
        let sent = Sent::read(request.headers());
        let fault = framing::fault(&request, &sent, &self.config.limits);
        // A body with two lengths may hide a second request. hyper has dropped `Content-Length` by now, so the
        // connection closes after any request with `Transfer-Encoding`, and after a malformed one, whose end
        // is unknown.
        let must_close = request.version() <= Version::HTTP_11 && (fault.is_some() || sent.has_coding());
        let is_head = *request.method() == Method::HEAD;
        let id = request_ids::header_value(in_flight.id());
        let mut is_proxied = false;
        let begun_as = match fault {
            Some(fault) => Next::Answer(self.errors(sent.accept).with(Code::Invalid, vec![fault])),
            None => self.begin(client, &request, &sent),
        };
        let mut response = match begun_as {
            Next::Answer(response) => response,
            Next::Redirect(location, head) => response::redirect(take(request.headers_mut()), location, head),
            Next::Led(to) => to.answer(take(request.headers_mut())),
            Next::Unknown(brand) => self.unknown(&mut request, brand),
            // Boxed, so that the future of a hit stays small.
            next => {
                is_proxied = matches!(next, Next::Proxy(_));
                Box::pin(self.go_on(next, client, request, &id, in_flight)).await
            }
        };
        if is_head {
            response::without_body(&mut response);
        }
        let headers = response.headers_mut();
        if is_proxied {
            headers.entry(X_REQUEST_ID).or_insert(id);
        } else {
            headers.insert(X_REQUEST_ID, id);
        }
        response::protect(headers, over_tls.then_some(self.config.strict_transport));
        if must_close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let kind = if is_proxied { Kind::Proxied } else { Kind::of(&response) };
        self.metrics.answered(kind, response.status(), begun.elapsed());
        response
    }

    /// The client of a request: the other end of its connection, or the one that a trusted proxy names.
    fn client(&self, connection: Client, request: &Request<Incoming>) -> Client {
        let proxies = &self.config.trusted_proxies;
        let connection = Client { is_tls: connection.is_tls || self.config.behind_tls_proxy, ..connection };
        if !proxies.trust(connection.ip) {
            // Only connections over loopback need this check.
            let is_local = connection.is_local
                && !self.config.behind_tls_proxy
                && !PROXY_HEADERS.iter().any(|name| request.headers().contains_key(*name));
            return Client { is_local, ..connection };
        }
        let lines = |name| request.headers().get_all(name).into_iter().map(HeaderValue::as_bytes);
        let is_https = lines("x-forwarded-proto").next_back().is_some_and(|proto| proto == b"https");
        let named = proxies.client(connection.ip, lines(proxies.header().as_str()));
        Client { ip: named.ip, is_tls: connection.is_tls || is_https, is_local: named.is_local() }
    }

    fn begin(&self, client: Client, request: &Request<Incoming>, sent: &Sent<'_>) -> Next {
        let errors = self.errors(sent.accept);
        let uri = request.uri();
        if uri.path().len() + uri.query().map_or(0, |query| query.len() + 1) > self.config.limits.uri_bytes {
            let limit = self.config.limits.uri_bytes;
            return Next::Answer(errors.with(Code::Invalid, vec![format!("url: at most {limit} bytes")]));
        }
        let ask = Ask {
            method: request.method(),
            host: framing::host(request, sent),
            path: uri.path(),
            query: uri.query(),
            accept: sent.accept,
            has_authorization: sent.has_authorization,
        };
        let domains = self.domains.load();
        let link = match route::route(&domains, &ask) {
            Route::Link(link) => link,
            Route::Proxy => return Next::Proxy(None),
            Route::ProxyRecord(short_id) => {
                let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
                return Next::Proxy(Some(format!("/redirections/{}{query}", short_id.replace('/', "%2F"))));
            }
            Route::Report(domain, short_id) => {
                return Next::Report(short_id.into_owned(), domains.withheld.brand(domain));
            }
            Route::DigitalLink(domain) => {
                let of = LinkRequest { client, request, sent, path: ask.path, domain, table: &domains };
                return self.digital_link(of, Vec::new());
            }
            Route::Resolver(domain) => {
                return Next::Answer(resolver::described(ask.method, domain).map(Body::of));
            }
            Route::Robots(robots) => return Next::Answer(response::text(robots.text())),
            Route::File(file) => return Next::Answer(response::file(file)),
            Route::Favicon => return Next::Answer(response::no_icon()),
            Route::Security => {
                let Some(contact) = &self.config.contact else {
                    let errors = self.errors_of_host(&domains, ask.host, sent);
                    return Next::Answer(errors.plain(Code::NoSuchPath));
                };
                return Next::Answer(response::text(contact.security_txt(self.clock.now().0)));
            }
            Route::Root => {
                return Next::Answer(self.errors_of_host(&domains, ask.host, sent).root());
            }
            Route::NoSuchPath => {
                if let Some(answer) = self.challenge(&ask) {
                    return Next::Answer(answer);
                }
                let errors = self.errors_of_host(&domains, ask.host, sent);
                return Next::Answer(errors.plain(Code::NoSuchPath));
            }
            Route::MethodNotAllowed => return Next::Answer(errors.plain(Code::MethodNotAllowed)),
            Route::Misdirected => {
                // Before the first contact no host is known; to say that it is not ours would be a guess.
                let is_known = self.status.is_ready() || !domains.is_empty();
                let code = if is_known { Code::MisdirectedHost } else { Code::Unavailable };
                return Next::Answer(self.challenge(&ask).unwrap_or_else(|| errors.plain(code)));
            }
        };
        if let Some(code) = domains.withheld.link(link.domain.account.as_ref(), link.key()) {
            let errors = self.errors_on(sent, link.domain, &domains.withheld);
            return Next::Answer(errors.closed_or_withheld(code));
        }
        let site = Site { domain: link.domain, withheld: &domains.withheld };
        let asking = Asking { client, request, sent, site, link: None };
        let is_redirect = link.representation == Representation::Redirect;
        // Rules that come from now on are later than this request.
        let held = if is_redirect && !self.asks_more(link.domain) {
            self.cache.leads(link.key())
        } else {
            self.cache.held(link.key()).map(Leads::Served)
        };
        match held {
            Held::Present(Leads::Served(served)) => {
                self.metrics.looked_up(CacheStatus::Hit);
                self.deliver(&asking, &served, link.representation)
            }
            Held::Present(Leads::To(lead)) => {
                self.metrics.looked_up(CacheStatus::Hit);
                let head = RedirectHead { status: lead.status_code, max_age: link.domain.redirect_max_age };
                let (folded, forward_query) = (&*link.folded, lead.forward_query);
                let led = Led { folded, forward_query, limited: None, rule: None, at: None, head };
                self.lead(&asking, led, lead.location)
            }
            Held::Absent => {
                self.metrics.looked_up(CacheStatus::Negative);
                let domain = link.domain;
                self.absent(LinkRequest { client, request, sent, path: ask.path, domain, table: &domains })
            }
            Held::Stale | Held::Nothing => Next::Fetch {
                key: RedirectKey::new(link.key().domain, &link.folded),
                domain: link.domain.clone(),
                representation: link.representation,
            },
        }
    }

    async fn go_on(
        &self,
        mut next: Next,
        client: Client,
        mut request: Request<Incoming>,
        id: &HeaderValue,
        in_flight: InFlight,
    ) -> Response<Body> {
        // A stream that HTTP/2 resets at once ends here, before an image is rendered; the proxy has its own check.
        if matches!(next, Next::Render(_) | Next::Code(_)) {
            yield_now().await;
        }
        if let Next::Fetch { key, domain, representation } = next {
            next = self.fetch(client, &request, &key, &domain, representation).await;
        }
        if let Next::Code(asked) = next {
            next = self.digital_link_code(*asked, client, request.headers()).await;
        }
        // Each round finds out about one more of a handful of levels.
        while let Next::Level(missing) = next {
            next = self.fetch_level(client, &request, *missing).await;
        }
        match next {
            Next::Answer(response) => response,
            Next::Redirect(location, head) => response::redirect(take(request.headers_mut()), location, head),
            Next::Led(to) => to.answer(take(request.headers_mut())),
            Next::Unknown(brand) => self.unknown(&mut request, brand),
            Next::Render(key) => self.render(key, client, request.headers()).await,
            Next::Report(short_id, brand) => {
                self.report((&short_id, brand), request, client, id, &in_flight).await
            }
            Next::Proxy(path) => {
                let accept = request.headers().get(ACCEPT).cloned();
                match self.proxy.pass(request, path, client, id, in_flight).await {
                    Ok(response) => response,
                    Err(code) => self.errors(accept.as_ref().map(HeaderValue::as_bytes)).plain(code),
                }
            }
            // A fetch is over by now; a second one is never asked for.
            Next::Fetch { .. } | Next::Level(_) | Next::Code(_) => {
                self.errors(request.headers().get(ACCEPT).map(HeaderValue::as_bytes)).plain(Code::Internal)
            }
        }
    }

    async fn fetch(
        &self,
        client: Client,
        request: &Request<Incoming>,
        key: &RedirectKey,
        domain: &Arc<ShortDomain>,
        representation: Representation,
    ) -> Next {
        let sent = Sent::read(request.headers());
        match self.fetch_key(client, key).await {
            Ok(Some(served)) => {
                // As of now: it may have been withheld while it was fetched.
                let domains = self.domains.load();
                let site = Site { domain, withheld: &domains.withheld };
                if let Some(code) = site.withheld.link(domain.account.as_ref(), KeyRef::of(key)) {
                    let errors = self.errors_on(&sent, domain, site.withheld);
                    return Next::Answer(errors.closed_or_withheld(code));
                }
                let asking = Asking { client, request, sent: &sent, site, link: None };
                self.deliver(&asking, &served, representation)
            }
            Ok(None) => {
                let (sent, path, table) = (&sent, request.uri().path(), &self.domains.load());
                self.absent(LinkRequest { client, request, sent, path, domain, table })
            }
            Err(code) => Next::Answer(self.errors(sent.accept).plain(code)),
        }
    }

    /// Reads a key through the backing, within the limits of the client.
    async fn fetch_key(&self, client: Client, key: &RedirectKey) -> Result<Found, Code> {
        self.allowed(client)?;
        match self.cache.fetch(&self.backing, &self.metrics, key).await {
            Ok((found, status)) => {
                self.metrics.looked_up(status);
                Ok(found)
            }
            Err(_) => {
                self.metrics.unanswered.inc();
                Err(Code::Unavailable)
            }
        }
    }

    /// Whether a client may ask for what is not held, once more.
    fn allowed(&self, client: Client) -> Result<(), Code> {
        if client.is_local || self.limiter.allows(client.ip) {
            return Ok(());
        }
        self.metrics.limited.inc();
        Err(Code::TooManyRequests)
    }

    fn deliver(&self, asking: &Asking<'_>, served: &Served, representation: Representation) -> Next {
        let Some(format) = images::format_of(representation) else {
            return match representation {
                Representation::Json => self.json(asking, served),
                _ => self.redirect(asking, served),
            };
        };
        self.image(asking, served, format)
    }
}
