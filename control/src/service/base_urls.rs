//! Scheme and host of URLs in responses: always one of ours, never an unknown `Host`.

use std::{
    collections::HashSet,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use shared::short_url::{Host, Scheme, ShortDomain};
use tenants::store::accounts;

use crate::state::ApiState;

/// Least time between two reads of the short domains, which only requests with an unknown host cause.
const REFRESH_PAUSE: Duration = Duration::from_secs(1);

/// Whether the service has a certificate for a host.
pub type IsCertified = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Settings for the URLs in responses.
#[derive(Clone, Default)]
pub struct UrlSettings {
    /// The base of the API as clients reach it; it decides alone.
    pub public_url: Option<String>,
    /// Behind a TLS proxy: every URL is https.
    pub behind_tls_proxy: bool,
    /// Addresses of the API's listeners.
    pub listeners: Vec<SocketAddr>,
    /// Names of the certificates; they may change while the process runs.
    pub is_certified: Option<IsCertified>,
    /// Certificates are development ones: browsers must not be bound to https for as long as usual.
    pub development: bool,
}

impl UrlSettings {
    /// The base of the API where there is no request: docs, webhooks, messages.
    #[must_use]
    pub fn own_base(&self, plain: SocketAddr, tls: Option<(SocketAddr, Option<String>)>) -> String {
        let base = |scheme: Scheme, host: &str| match ShortDomain::new(scheme, host) {
            Ok(domain) => format!("{}://{}", scheme.as_str(), domain.host),
            Err(_) => format!("{}://{host}", scheme.as_str()),
        };
        match (&self.public_url, tls) {
            (Some(url), _) => url.clone(),
            (None, Some((address, Some(name)))) => base(Scheme::Https, &format!("{name}:{}", address.port())),
            (None, Some((address, None))) => base(Scheme::Https, &reachable(address).to_string()),
            (None, None) => {
                let scheme = if self.behind_tls_proxy { Scheme::Https } else { Scheme::Http };
                base(scheme, &reachable(plain).to_string())
            }
        }
    }

    /// A warning at start if clients could get URLs that do not work.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        (self.behind_tls_proxy && self.public_url.is_none()).then_some(
            "a TLS proxy stands in front, but WAYMARK_PUBLIC_URL is not set: URLs in answers name the host of a request \
             only if it is a short domain, a certificate's name or an address of this process, else the API's listener",
        )
    }
}

impl fmt::Debug for UrlSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlSettings")
            .field("public_url", &self.public_url)
            .field("behind_tls_proxy", &self.behind_tls_proxy)
            .field("listeners", &self.listeners)
            .finish_non_exhaustive()
    }
}

/// The settings, and the short domains as they were last read.
#[derive(Debug)]
pub struct BaseUrls {
    settings: UrlSettings,
    domains: Mutex<Domains>,
}

#[derive(Debug, Default)]
struct Domains {
    hosts: HashSet<Host>,
    read_at: Option<Instant>,
}

/// How a request reached the service.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reached<'a> {
    /// `Host`, or the authority of HTTP/2.
    pub host: Option<&'a str>,
    /// The client speaks TLS, to us or to a proxy.
    pub is_https: bool,
    /// An edge passed it on, which does so for short domains alone.
    pub is_of_edge: bool,
    /// Our end of the connection.
    pub local: Option<IpAddr>,
}

impl BaseUrls {
    /// Base URLs by these settings.
    #[must_use]
    pub fn new(settings: UrlSettings) -> Self {
        Self { settings, domains: Mutex::default() }
    }

    /// Whether certificates are development ones.
    #[must_use]
    pub fn is_development(&self) -> bool {
        self.settings.development
    }

    /// Whether a host is ours, whatever the database says.
    fn is_own(&self, host: &Host, docs_url: &str, reached: Reached<'_>) -> bool {
        let name = name_of(host.as_str());
        let is_ours = |ip: IpAddr| {
            let listens = self.settings.listeners.iter().any(|listener| listener.ip() == ip);
            ip.is_loopback() || reached.local == Some(ip) || (listens && !ip.is_unspecified())
        };
        let is_address =
            name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| is_ours(ip.to_canonical()));
        let docs = docs_url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
        reached.is_of_edge
            || name == "localhost"
            || is_address
            || docs.is_some_and(|docs| name_of(docs).eq_ignore_ascii_case(name))
            || self.settings.is_certified.as_ref().is_some_and(|is_certified| is_certified(name))
    }

    fn is_domain(&self, host: &Host) -> bool {
        self.domains.lock().unwrap_or_else(PoisonError::into_inner).hosts.contains(host)
    }

    /// Whether the short domains may be read again; a caller that gets `true` does so.
    fn may_read(&self) -> bool {
        let mut domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = domains.read_at.is_none_or(|at| at.elapsed() >= REFRESH_PAUSE);
        if is_due {
            domains.read_at = Some(Instant::now());
        }
        is_due
    }

    fn keep(&self, found: &[ShortDomain]) {
        let hosts = found.iter().map(|domain| domain.host.clone()).collect();
        self.domains.lock().unwrap_or_else(PoisonError::into_inner).hosts = hosts;
    }
}

/// Scheme and host of the URLs in the answer to a request, without a slash at the end.
///
/// The host that the client named if it is known to be ours, else our own base.
pub async fn base_url(app: &ApiState, reached: Reached<'_>) -> String {
    let urls = &app.base_urls;
    if let Some(public) = &urls.settings.public_url {
        return public.clone();
    }
    let is_https = reached.is_https || urls.settings.behind_tls_proxy;
    let scheme = if is_https { Scheme::Https } else { Scheme::Http };
    let host = reached.host.and_then(|host| ShortDomain::new(scheme, host).ok()).map(|named| named.host);
    if let Some(host) = host {
        let is_known = urls.is_own(&host, &app.docs_url, reached) || is_short_domain(app, &host).await;
        if is_known {
            return format!("{}://{host}", scheme.as_str());
        }
    }
    app.docs_url.strip_suffix("/docs").unwrap_or(&app.docs_url).to_owned()
}

async fn is_short_domain(app: &ApiState, host: &Host) -> bool {
    let urls = &app.base_urls;
    if urls.is_domain(host) {
        return true;
    }
    if !urls.may_read() {
        return false;
    }
    let read = async { accounts::list_all_domains(&mut app.core.db.read().await?).await };
    match read.await {
        Ok(domains) => urls.keep(&domains),
        Err(error) => tracing::warn!(%error, "the short domains could not be read"),
    }
    urls.is_domain(host)
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

/// The address that a client on this machine uses for a listener on every address.
fn reachable(address: SocketAddr) -> SocketAddr {
    let loopback: IpAddr = match address {
        SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    let ip = if address.ip().is_unspecified() { loopback } else { address.ip() };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_hosts_are_written() {
        let certified: IsCertified = Arc::new(|name| name == "api.example");
        let urls = BaseUrls::new(UrlSettings {
            listeners: vec!["192.0.2.1:8080".parse().unwrap(), "0.0.0.0:8081".parse().unwrap()],
            is_certified: Some(certified),
            ..UrlSettings::default()
        });
        let local = Reached { local: "198.51.100.7".parse().ok(), ..Reached::default() };
        let of_edge = Reached { is_of_edge: true, ..Reached::default() };
        for (host, reached, expected) in [
            ("api.example", local, true),
            ("API.example:8443", local, true),
            ("docs.example", local, true),
            ("localhost:8080", local, true),
            ("127.0.0.1:9", local, true),
            ("127.8.8.8", local, true),
            ("[::1]:8080", local, true),
            ("192.0.2.1", local, true),
            ("198.51.100.7", local, true),
            ("198.51.100.8", local, false),
            ("0.0.0.0", local, false),
            ("evil.example", local, false),
            ("api.example.evil.example", local, false),
            ("localhost.evil.example", local, false),
            ("tn.gg", local, false),
            ("tn.gg", of_edge, true),
        ] {
            let parsed: Host = host.parse().unwrap();
            assert_eq!(urls.is_own(&parsed, "https://docs.example/docs", reached), expected, "{host}");
        }
        let parsed: Host = "tn.gg".parse().unwrap();
        assert!(urls.may_read() && !urls.may_read(), "a stranger's hosts do not reach the database at will");
        urls.keep(&[ShortDomain::new(Scheme::Https, "tn.gg").unwrap()]);
        assert!(urls.is_domain(&parsed));
    }

    #[test]
    fn the_own_base_is_https_where_clients_need_it() {
        let plain: SocketAddr = "0.0.0.0:8080".parse().unwrap();
        let tls: SocketAddr = "0.0.0.0:443".parse().unwrap();
        let name = || Some("api.example".to_owned());
        for (public, behind, tls, expected) in [
            (None, false, None, "http://127.0.0.1:8080"),
            (None, true, None, "https://127.0.0.1:8080"),
            (None, false, Some((tls, None)), "https://127.0.0.1"),
            (None, false, Some((tls, name())), "https://api.example"),
            (Some("https://waymark.example"), true, Some((tls, name())), "https://waymark.example"),
        ] {
            let settings = UrlSettings {
                public_url: public.map(str::to_owned),
                behind_tls_proxy: behind,
                ..UrlSettings::default()
            };
            assert_eq!(settings.own_base(plain, tls), expected);
            assert_eq!(settings.warning().is_some(), behind && public.is_none());
        }
    }
}
