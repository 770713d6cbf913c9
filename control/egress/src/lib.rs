//! The egress guard: an HTTP client for URLs that users gave. It only connects where [`tenants::domain::egress`] allows.
//!
//! A name is resolved here, and the connection is made to the addresses that were checked, so a DNS answer that changes
//! in between has no effect. Redirects are followed by looks at pages alone ([`Page`]), no proxy of the environment is
//! used, and no more of a response is read than is shown.

mod page;

use std::{
    fmt, io,
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use tenants::domain::egress::{check_url, is_open};
use tokio::sync::Semaphore;

pub use self::page::Page;

/// Longest time for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time for a request as a whole.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes of an answer that are kept.
const MAX_EXCERPT: usize = 1_024;

/// Resolves names.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of a host now.
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// The system's resolver, with a bound on concurrent look-ups: each takes a thread for as long as it lasts, and the
/// rest of the process needs threads, too.
#[derive(Debug, Clone)]
pub struct SystemLookup(Arc<Semaphore>);

/// Concurrent look-ups.
const LOOKUPS: usize = 64;

impl Default for SystemLookup {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS)))
    }
}

impl Lookup for SystemLookup {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let permits = self.0.clone();
        Box::pin(async move {
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            // The caller may have given up; the thread continues and keeps its permit.
            let find = move || {
                let _permit = permit;
                (host.as_str(), 0).to_socket_addrs().map(Iterator::collect)
            };
            tokio::task::spawn_blocking(find).await.map_err(io::Error::other)?
        })
    }
}

/// The client of requests that go out.
#[derive(Clone)]
pub struct EgressClient {
    client: Client,
    loopback: bool,
}

impl fmt::Debug for EgressClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressClient").field("loopback", &self.loopback).finish_non_exhaustive()
    }
}

/// A receiver's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The beginning of its body.
    pub excerpt: String,
    /// How long it took.
    pub took: Duration,
}

/// A request to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// Where to.
    pub url: &'a str,
    /// Headers beside the type of the content.
    pub headers: &'a [(&'static str, &'a str)],
    /// JSON.
    pub body: &'a str,
}

impl EgressClient {
    /// A client for public addresses, and for loopback if the operator allows it.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(loopback: bool, lookup: Arc<dyn Lookup>) -> Result<Self, String> {
        let client = Client::builder()
            .dns_resolver(Arc::new(Guarded { loopback, lookup }))
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .pool_max_idle_per_host(16)
            .user_agent(concat!("Waymark/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { client, loopback })
    }

    /// Whether loopback is allowed.
    #[must_use]
    pub const fn allows_loopback(&self) -> bool {
        self.loopback
    }

    /// A request to read a URL, which the caller sends.
    ///
    /// # Errors
    /// The URL may not be contacted, as a short text.
    pub fn get(&self, url: &str) -> Result<reqwest::RequestBuilder, String> {
        let url = check_url(url, self.loopback).map_err(|fault| format!("the URL {fault}"))?;
        Ok(self.client.get(url))
    }

    /// Sends JSON.
    ///
    /// # Errors
    /// Why there was no answer, as a short text without anything of the answer or of the network within.
    pub async fn post(&self, post: Post<'_>) -> Result<Answer, String> {
        // The setting may have changed since the URL was given, and a host that is an address is not resolved.
        let url = check_url(post.url, self.loopback).map_err(|fault| format!("the URL {fault}"))?;
        let begun = Instant::now();
        let mut request = self.client.post(url).header("content-type", "application/json");
        for (name, value) in post.headers {
            request = request.header(*name, *value);
        }
        let mut response =
            request.body(post.body.to_owned()).send().await.map_err(|error| text_of(&error))?;
        let status = response.status().as_u16();
        let mut excerpt = Vec::new();
        while excerpt.len() < MAX_EXCERPT {
            match response.chunk().await {
                Ok(Some(chunk)) => excerpt.extend_from_slice(&chunk),
                // It has answered, even if it does not say all of it.
                Ok(None) | Err(_) => break,
            }
        }
        excerpt.truncate(MAX_EXCERPT);
        // Postgres stores no U+0000.
        let excerpt = String::from_utf8_lossy(&excerpt).replace('\0', "\u{fffd}");
        Ok(Answer { status, excerpt, took: begun.elapsed() })
    }
}

/// Describes the failure in our own words, because the library's may contain addresses.
fn text_of(error: &reqwest::Error) -> String {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = source {
        if inner.is::<Closed>() {
            return Closed.to_string();
        }
        source = inner.source();
    }
    if error.is_timeout() {
        "no answer in time".to_owned()
    } else if error.is_connect() {
        "no connection could be made".to_owned()
    } else {
        "the connection broke".to_owned()
    }
}

/// The name leads to no address that may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host has no public address")]
struct Closed;

struct Guarded {
    loopback: bool,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (loopback, found) = (self.loopback, self.lookup.lookup(name.as_str().to_owned()));
        Box::pin(async move {
            let found = found.await?;
            // One private address disqualifies the whole name: there is no legitimate use for such a mixture.
            if found.is_empty() || !found.iter().all(|address| is_open(address.ip(), loopback)) {
                return Err(Closed.into());
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests;
