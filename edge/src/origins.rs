//! The replicas of control that an edge may ask: one at a time, the next after a failure.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use http::{
    Uri,
    uri::{Authority, Scheme},
};

use crate::error::EdgeError;

/// One replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// `http` or `https`.
    pub(crate) scheme: Scheme,
    /// Host and port.
    pub(crate) authority: Authority,
}

impl Origin {
    /// Whether connections are TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The port, also where the URL names none.
    pub(crate) fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    /// The host without the brackets of an address.
    pub(crate) fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }
}

/// The replicas, of which one is in use.
#[derive(Debug)]
pub(crate) struct Origins {
    all: Box<[Origin]>,
    at: AtomicUsize,
}

impl Origins {
    /// Reads the URLs; begins at a random one, so that a fleet spreads over the replicas.
    ///
    /// # Errors
    /// There is none, or one is no origin, or one is plain HTTP beyond this machine and `secret` is set.
    pub(crate) fn new(key: &'static str, urls: &[String], secret: bool) -> Result<Self, EdgeError> {
        let all: Box<[Origin]> = urls.iter().map(|url| origin(key, url, secret)).collect::<Result<_, _>>()?;
        if all.is_empty() {
            return Err(EdgeError::Config { key, reason: "must name at least one URL".to_owned() });
        }
        // Without random bits the first will do.
        let at = getrandom::u32().unwrap_or(0) as usize % all.len();
        Ok(Self { all, at: AtomicUsize::new(at) })
    }

    /// Whether any of them speaks TLS.
    pub(crate) fn need_tls(&self) -> bool {
        self.all.iter().any(Origin::is_tls)
    }

    /// Every replica, beginning with the one in use.
    pub(crate) fn in_turn(&self) -> impl Iterator<Item = &Origin> {
        let at = self.at.load(SeqCst) % self.all.len();
        self.all.iter().cycle().skip(at).take(self.all.len())
    }

    /// The one in use.
    pub(crate) fn current(&self) -> &Origin {
        // The remainder is below the length.
        &self.all[self.at.load(SeqCst) % self.all.len()]
    }

    /// Leaves a replica that failed, unless somebody else has left it already.
    pub(crate) fn leave(&self, failed: &Origin) {
        let at = self.at.load(SeqCst);
        if self.all.get(at % self.all.len()) == Some(failed) {
            let next = (at + 1) % self.all.len();
            // Whoever was first has gone on.
            let _ = self.at.compare_exchange(at, next, SeqCst, SeqCst);
        }
    }
}

fn origin(key: &'static str, url: &str, secret: bool) -> Result<Origin, EdgeError> {
    let loopback = if secret { " on loopback" } else { "" };
    let wrong = |why: &str| EdgeError::Config {
        key,
        reason: format!("must be https://host:port, or http://{loopback}, without a path; {url:?} {why}"),
    };
    let uri: Uri = url.trim().parse().map_err(|_| wrong("is no URL"))?;
    let is_bare = matches!(uri.path(), "/" | "") && uri.query().is_none();
    let parts = uri.into_parts();
    let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority.filter(|_| is_bare)) else {
        return Err(wrong("has a path, or no scheme"));
    };
    let origin = Origin { scheme, authority };
    if origin.authority.as_str().contains('@') {
        return Err(wrong("holds credentials"));
    }
    if origin.scheme == Scheme::HTTP {
        let is_local = origin.host() == "localhost"
            || origin.host().parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        return if is_local || !secret { Ok(origin) } else { Err(wrong("would send keys in the clear")) };
    }
    if origin.scheme != Scheme::HTTPS {
        return Err(wrong("has another scheme"));
    }
    Ok(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_origins_that_keep_keys_secret_are_asked() {
        for (url, fits) in [
            ("http://127.0.0.1:8080", true),
            ("http://127.0.0.1:8080/", true),
            ("http://[::1]:8080", true),
            ("http://localhost:8080", true),
            ("https://control.example", true),
            ("https://10.0.0.1:8443/", true),
            ("http://10.0.0.1:8080", false),
            ("http://control.example:8080", false),
            ("https://control.example/api", false),
            ("https://control.example/?x", false),
            ("https://user:pw@control.example", false),
            ("ftp://control.example", false),
            ("127.0.0.1:8080", false),
            ("", false),
        ] {
            assert_eq!(Origins::new("control_urls", &[url.to_owned()], true).is_ok(), fits, "{url}");
        }
        assert!(Origins::new("control_urls", &["http://10.0.0.1:8080".to_owned()], false).is_ok());
        assert!(Origins::new("control_urls", &[], false).is_err());
    }

    #[test]
    fn a_failure_leads_to_the_next_and_only_once() {
        let origins =
            Origins::new("control_urls", &["https://a", "https://b", "https://c"].map(str::to_owned), true)
                .unwrap();
        let first = origins.current().clone();
        let order: Vec<_> = origins.in_turn().cloned().collect();
        assert_eq!(order.len(), 3);
        origins.leave(&first);
        origins.leave(&first);
        assert_eq!(*origins.current(), order[1]);
        origins.leave(&order[1]);
        origins.leave(&order[2]);
        assert_eq!(*origins.current(), first);
    }
}
