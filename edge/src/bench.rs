//! Entry points to the hot functions, for benchmarks only.
//!
//! They do what a request does, without the connection.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use http::{HeaderMap, HeaderValue, Method};
use shared::{
    negotiate::Representation,
    redirect::{Redirect, RedirectKey},
    short_url::ShortDomain,
    wire::{
        links::LinksPage,
        stream::{Change, Event, Events, Fill, Rev},
    },
};

use crate::{
    cache::{EdgeCache, Held, KeyRef, Leads},
    domains::Domains,
    redirect_head::RedirectHead,
    response,
    route::{self, Ask, Route},
};

/// Large enough for every link of a benchmark.
const CACHE_BYTES: u64 = 1 << 30;
/// The revision of every link at the start.
const BASE: Rev = 1;

/// The inside of an edge that holds some links of one domain.
#[derive(Debug)]
pub struct Hot {
    domains: Domains,
    cache: EdgeCache,
    rev: AtomicU64,
}

impl Hot {
    /// An edge that holds links; `is_replica`: in the table of all, else as if each was asked for once.
    ///
    /// # Panics
    /// One of the links cannot be held: the benchmark is wrong.
    #[must_use]
    pub fn new(domain: ShortDomain, links: Vec<Redirect>, is_replica: bool) -> Self {
        let host = domain.host.as_str().to_owned();
        let domains = Domains::default();
        domains.replace(0, &[domain], None);
        let cache = if is_replica { EdgeCache::full(CACHE_BYTES) } else { EdgeCache::new(CACHE_BYTES) };
        let epoch = "bench".into();
        cache.snapshot(&epoch, BASE, &[]);
        cache.set_live(true);
        let links =
            links.into_iter().map(|link| (link.short_id.as_str().into(), BASE, link.into())).collect();
        if let Some(reading) = cache.unread() {
            let page = LinksPage { epoch, at_rev: BASE, more: false, links };
            let _ = reading.take(&host, &page);
            reading.end();
        } else {
            for (folded, rev, link) in links {
                let (epoch, value) = (epoch.clone(), Some((rev, link)));
                let fill = Fill { epoch, complete: true, watermark: BASE, value };
                assert!(cache.take_view(&RedirectKey::new(&host, &folded), &fill), "a link is held");
            }
        }
        Self { domains, cache, rev: AtomicU64::new(BASE) }
    }

    /// Routes a GET; returns whether it is a short URL.
    pub fn route(&self, host: &str, path: &str, accept: Option<&str>) -> bool {
        let ask = Ask {
            method: &Method::GET,
            host,
            path,
            query: None,
            accept: accept.map(str::as_bytes),
            has_authorization: false,
        };
        let domains = self.domains.load();
        matches!(route::route(&domains, &ask), Route::Link(link) if link.representation == Representation::Redirect)
    }

    /// Where a short id leads; `None` for one that is known to be absent, or not held.
    pub fn look_up(&self, host: &str, folded: &str) -> Option<HeaderValue> {
        match self.cache.leads(KeyRef { domain: host, folded }) {
            Held::Present(Leads::To(lead)) => Some(lead.location),
            Held::Present(Leads::Served(served)) => Some(served.location.clone()),
            Held::Absent | Held::Stale | Held::Nothing => None,
        }
    }

    /// Builds the response of a redirect; returns how many headers it has. `headers` are used again, as hyper does.
    pub fn respond(&self, headers: &mut HeaderMap, location: HeaderValue) -> usize {
        let mut response = response::redirect(std::mem::take(headers), location, RedirectHead::default());
        *headers = std::mem::take(response.headers_mut());
        headers.len()
    }

    /// Applies the event of one changed link, as the next revision.
    pub fn apply(&self, link: Redirect) {
        let prev = self.rev.fetch_add(1, SeqCst);
        let key = RedirectKey::new(link.domain.as_str(), link.short_id.as_str());
        let change = Change::Redirect(key, Some(link.into()));
        let events = Events { prev, last: prev + 1, items: vec![Event { rev: prev + 1, change }] };
        // In order, so there is no gap.
        let _ = self.cache.apply(&events, &self.domains);
    }
}
