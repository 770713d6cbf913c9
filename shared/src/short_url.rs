//! Short domains, short URLs, and the payload of a QR code.

use std::{fmt, net::IpAddr, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    domain_files::DomainFiles,
    domain_paths::DomainPaths,
    id::AccountId,
    pages::{self, Pages},
    personal_data::PersonalData,
    short_id::ShortId,
    standing::Standing,
};

crate::words! {
    /// Scheme of the short URLs of a domain: `http` only for a development domain without TLS.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Scheme {
        /// Plain HTTP.
        Http = "http",
        /// HTTP over TLS.
        Https = "https",
    } else InvalidHost
}

impl Scheme {
    /// The scheme of a host for which none was written: https, save for an address of this machine alone.
    #[must_use]
    pub fn of_host(host: &str) -> Self {
        if is_loopback(name_of(host)) { Self::Http } else { Self::Https }
    }

    const fn default_port(self) -> &'static str {
        match self {
            Self::Http => ":80",
            Self::Https => ":443",
        }
    }
}

/// Why a text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a host has 1 to 253 characters: a DNS name or an address, with :port when it is not the default")]
pub struct InvalidHost;

/// The host of a short domain: lower case, with the port when it is not the scheme's default.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Host(Box<str>);

impl Host {
    /// The host as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Host {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        if text.is_empty() || text.len() > 253 {
            return Err(InvalidHost);
        }
        let (name, port) = match text.rsplit_once(':') {
            // An IPv6 literal holds colons itself and ends with a bracket.
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            Some(_) | None => (text, None),
        };
        let name_fits = match name.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
            None => name.split('.').all(|label| {
                !label.is_empty()
                    && label.len() <= 63
                    && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                    && !label.starts_with('-')
                    && !label.ends_with('-')
            }),
        };
        let port_fits = port.is_none_or(|port| {
            port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port != 0)
        });
        if name_fits && port_fits { Ok(Self(text.to_ascii_lowercase().into())) } else { Err(InvalidHost) }
    }
}

impl TryFrom<String> for Host {
    type Error = InvalidHost;

    fn try_from(text: String) -> Result<Self, InvalidHost> {
        text.parse()
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.0.into()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A domain under which short ids are given out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortDomain {
    /// Host, with the port when it is not the scheme's default.
    pub host: Host,
    /// Scheme of its short URLs and QR payloads.
    pub scheme: Scheme,
    /// Imported mixed-case ids: exact match only, and the QR payload is in byte mode.
    pub case_sensitive: bool,
    /// The account it belongs to, whose rules of redirection hold on it; `None` from an older control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// How much that account keeps of the people behind scans; `None` where it was not told, as by an older control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personal_data: Option<PersonalData>,
    /// Seconds for which browsers and shared caches may keep its redirects; `None`: they must not. Edges of releases before this
    /// member let nobody keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_max_age: Option<u32>,
    /// Whether paths of GS1 Digital Links are resolved on it. Edges of releases before this member know none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub digital_links: bool,
    /// What it serves beside links; `None`: nothing was set. Only what is published to edges has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Arc<DomainFiles>>,
    /// The domain was removed; it had no links. Edges of releases before this member keep it until they connect again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Pages for people where a code of it leads nowhere; `None`: those of the edge, as on edges of releases before this member.
    /// Control reads it only where it tells edges of the domain.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "pages::read_if_known")]
    pub pages: Option<Arc<Pages>>,
    /// Which paths lead to its links. Edges of releases before this member know `/SHORTID` alone.
    #[serde(default, skip_serializing_if = "DomainPaths::is_default")]
    pub paths: DomainPaths,
}

/// Most seconds that [`ShortDomain::redirect_max_age`] may be: a day, after which a changed target is seen everywhere.
pub const MAX_REDIRECT_AGE: u32 = 86_400;

impl ShortDomain {
    /// A domain without an account that ignores case; a default port in `host` is removed.
    ///
    /// # Errors
    /// The text is not a host.
    pub fn new(scheme: Scheme, host: &str) -> Result<Self, InvalidHost> {
        let host = host.strip_suffix(scheme.default_port()).unwrap_or(host).parse()?;
        Ok(Self {
            host,
            scheme,
            case_sensitive: false,
            account: None,
            personal_data: None,
            redirect_max_age: None,
            digital_links: false,
            files: None,
            removed: false,
            pages: None,
            paths: DomainPaths::default(),
        })
    }

    /// Whether edges must not record addresses and user agents.
    #[must_use]
    pub fn omits_personal_data(&self) -> bool {
        self.personal_data == Some(PersonalData::None)
    }

    /// Whether what is known of an item decides whether its link leads on.
    #[must_use]
    pub fn stops_copies(&self) -> bool {
        self.pages.as_ref().is_some_and(|pages| pages.copies.is_some())
    }

    /// Whether whoever scans an item of this status gets a page, in place of the link's own target.
    #[must_use]
    pub fn stops(&self, standing: &Standing) -> bool {
        self.pages.as_ref().is_some_and(|pages| pages.stops(standing))
    }

    /// Whether its codes are for development only: they lead to this machine or into a local network.
    #[must_use]
    pub fn is_development(&self) -> bool {
        let name = name_of(self.host.as_str());
        is_loopback(name) || name.ends_with(".local") || address_of(name).is_some_and(is_local_network)
    }

    /// The text by which a short id is looked up on this domain.
    #[must_use]
    pub fn fold(&self, short_id: &ShortId) -> Box<str> {
        if self.case_sensitive { short_id.as_str().into() } else { short_id.folded() }
    }

    /// The short id that a path names, which comes without its first slash: mostly of a short URL, else of a Digital Link.
    #[must_use]
    pub fn short_id_in(&self, path: &str) -> Option<ShortId> {
        if !path.contains('/') {
            return path.parse().ok();
        }
        match self.paths.short_id_in(path, self.case_sensitive) {
            Some(text) => text.parse().ok(),
            None => path.parse().ok().filter(ShortId::is_digital_link),
        }
    }

    /// Why the domain has no such short id of somebody's choice, as a sentence without the name of the member.
    #[must_use]
    pub fn fault_of(&self, short_id: &ShortId) -> Option<String> {
        if !short_id.has_segments() {
            return None;
        }
        let host = &self.host;
        if !self.paths.multi_segment {
            return Some(format!("short ids of {host} have one segment, because its multiSegment is false"));
        }
        let prefix = self.paths.path_prefix.as_ref()?;
        let is_below = prefix.cut(short_id.as_str(), self.case_sensitive).is_some();
        is_below.then(|| format!("short ids of {host} must not begin with {prefix}/, its pathPrefix"))
    }

    /// The short URL, for people and JSON: `https://tn.gg/K7Q2M4XA9R`, or with the prefix of its paths before the short id. A
    /// Digital Link has none.
    #[must_use]
    pub fn short_url(&self, short_id: &ShortId) -> String {
        let (scheme, host) = (self.scheme.as_str(), &self.host);
        match self.paths.in_urls().filter(|_| !short_id.is_digital_link()) {
            Some(prefix) => format!("{scheme}://{host}/{prefix}/{short_id}"),
            None => format!("{scheme}://{host}/{short_id}"),
        }
    }

    /// The text in the QR code: upper case where case does not matter, so that it is alphanumeric. In Digital Links it matters.
    ///
    /// 24 characters on `tn.gg`, which is version 2 at level Q (README, "Short ids and the size of a code").
    #[must_use]
    pub fn qr_payload(&self, short_id: &ShortId) -> String {
        let url = self.short_url(short_id);
        if self.case_sensitive || short_id.is_digital_link() { url } else { url.to_ascii_uppercase() }
    }
}

/// Whether a host and a path are a short URL of one of these domains; the path comes without its first slash.
#[must_use]
pub fn is_short_url(domains: &[ShortDomain], (host, path): (&str, &str)) -> bool {
    domains.iter().any(|domain| domain.host.as_str() == host && domain.short_id_in(path).is_some())
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        Some(_) | None => host,
    }
}

fn address_of(name: &str) -> Option<IpAddr> {
    name.trim_matches(['[', ']']).parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

fn is_loopback(name: &str) -> bool {
    let is_name = |name: &str| name.eq_ignore_ascii_case("localhost");
    is_name(name)
        || name.rsplit_once('.').is_some_and(|(_, last)| is_name(last))
        || address_of(name).is_some_and(|ip| ip.is_loopback())
}

/// Whether an address is of a local network: private, link-local, or of a carrier's shared space.
#[must_use]
pub fn is_local_network(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            ip.is_private() || ip.is_link_local() || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_checked_and_lowered() {
        for (text, expected) in [
            ("TN.GG", Some("tn.gg")),
            ("127.0.0.1:8081", Some("127.0.0.1:8081")),
            ("[::1]:8081", Some("[::1]:8081")),
            ("localhost", Some("localhost")),
            ("", None),
            ("a..b", None),
            ("tn.gg/x", None),
            ("tn.gg:", None),
            ("tn.gg:0", None),
            ("tn.gg:70000", None),
            ("tn.gg:+1", None),
            ("tn gg", None),
            ("user@tn.gg", None),
        ] {
            assert_eq!(text.parse::<Host>().ok().as_ref().map(Host::as_str), expected, "{text:?}");
        }
    }

    #[test]
    fn only_loopback_is_http_by_itself() {
        for (host, scheme, is_development) in [
            ("tn.gg", Scheme::Https, false),
            ("tn.gg:8443", Scheme::Https, false),
            ("localhost.example", Scheme::Https, false),
            ("203.0.113.7", Scheme::Https, false),
            ("192.168.1.5:8443", Scheme::Https, true),
            ("10.0.0.1", Scheme::Https, true),
            ("[fd00::1]:8443", Scheme::Https, true),
            ("printer.local", Scheme::Https, true),
            ("127.0.0.1:8081", Scheme::Http, true),
            ("127.0.0.2", Scheme::Http, true),
            ("[::1]:8081", Scheme::Http, true),
            ("LOCALHOST:8081", Scheme::Http, true),
            ("tn.localhost", Scheme::Http, true),
        ] {
            assert_eq!(Scheme::of_host(host), scheme, "{host}");
            assert_eq!(ShortDomain::new(scheme, host).unwrap().is_development(), is_development, "{host}");
        }
    }

    #[test]
    fn the_payload_is_24_upper_case_characters() {
        let domain = ShortDomain::new(Scheme::Https, "tn.gg:443").unwrap();
        let id: ShortId = "K7Q2M4XA9R".parse().unwrap();
        assert_eq!(domain.short_url(&id), "https://tn.gg/K7Q2M4XA9R");
        assert_eq!(domain.qr_payload(&id), "HTTPS://TN.GG/K7Q2M4XA9R");
        assert_eq!(domain.qr_payload(&id).len(), 24);
        let exact = ShortDomain { case_sensitive: true, ..domain };
        let id: ShortId = "aBcDeFgH".parse().unwrap();
        assert_eq!(exact.qr_payload(&id), "https://tn.gg/aBcDeFgH");
        assert_eq!(&*exact.fold(&id), "aBcDeFgH");
    }

    #[test]
    fn a_prefix_is_in_urls_where_the_domain_says_so() {
        let mut domain = ShortDomain::new(Scheme::Https, "tn.gg").unwrap();
        let id: ShortId = "K7Q2M4XA9R".parse().unwrap();
        domain.paths.path_prefix = "shop/go".parse().ok();
        assert_eq!(domain.short_url(&id), "https://tn.gg/K7Q2M4XA9R");
        domain.paths.prefix_in_urls = true;
        assert_eq!(domain.short_url(&id), "https://tn.gg/shop/go/K7Q2M4XA9R");
        assert_eq!(domain.qr_payload(&id), "HTTPS://TN.GG/SHOP/GO/K7Q2M4XA9R");
        let link: ShortId = "01/09528765123457/10/l1".parse().unwrap();
        assert_eq!(domain.qr_payload(&link), "https://tn.gg/01/09528765123457/10/l1");
        assert_eq!(domain.short_id_in(link.as_str()).as_ref(), Some(&link));
        for (path, expected) in
            [("SHOP/GO/K7Q2M4XA9R", Some("K7Q2M4XA9R")), ("abc", Some("abc")), ("a/b", None), ("a.b", None)]
        {
            assert_eq!(domain.short_id_in(path).as_ref().map(ShortId::as_str), expected, "{path}");
        }
        let fault = |domain: &ShortDomain, id: &str| domain.fault_of(&id.parse().unwrap()).is_some();
        assert_eq!(["a", "a/b"].map(|id| fault(&domain, id)), [false, true]);
        domain.paths.multi_segment = true;
        assert_eq!(["a/b", "SHOP/GO/b", "shop/go"].map(|id| fault(&domain, id)), [false, true, false]);
        let text = serde_json::to_string(&domain).unwrap();
        assert_eq!(serde_json::from_str::<ShortDomain>(&text).unwrap(), domain);
    }
}
