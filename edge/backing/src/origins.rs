//! The control replicas of an edge: one is used at a time, the next after a failure, and a silent one comes last.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use http::{
    Uri,
    uri::{Authority, Scheme},
};

use crate::error::EdgeError;

/// How long a replica is last in line after it left a request without an answer: such a request costs its whole time
/// limit, where one that is refused costs nothing.
const AVOIDED: Duration = Duration::from_secs(60);

/// One replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Host and port.
    pub authority: Authority,
}

impl Origin {
    /// Whether connections are TLS.
    pub fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The port, also where the URL names none.
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    /// The host without the brackets of an address.
    pub fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }
}

/// The replicas, of which one is in use.
#[derive(Debug)]
pub struct Origins {
    all: Arc<[Origin]>,
    /// Until when each is last in line; of all that ask the same replicas.
    avoided: Arc<Mutex<Vec<Option<Instant>>>>,
    at: AtomicUsize,
}

impl Origins {
    /// Parses the URLs; starts with a random one, so that a fleet spreads over the replicas.
    ///
    /// # Errors
    /// The list is empty, a URL is not an origin, or one is plain HTTP beyond this machine and `secret` is set.
    pub fn new(key: &'static str, urls: &[String], secret: bool) -> Result<Self, EdgeError> {
        let all: Arc<[Origin]> = urls.iter().map(|url| origin(key, url, secret)).collect::<Result<_, _>>()?;
        if all.is_empty() {
            return Err(EdgeError::Config { key, reason: "must name at least one URL".to_owned() });
        }
        let avoided = Arc::new(Mutex::new(vec![None; all.len()]));
        Ok(Self { at: AtomicUsize::new(somewhere(&all)), all, avoided })
    }

    /// The same replicas for another purpose, with a different one first; they share which replicas are silent.
    pub fn beside(&self) -> Self {
        let at = AtomicUsize::new(somewhere(&self.all));
        Self { all: self.all.clone(), avoided: self.avoided.clone(), at }
    }

    /// Whether any of them speaks TLS.
    pub fn need_tls(&self) -> bool {
        self.all.iter().any(Origin::is_tls)
    }

    /// Every replica, beginning with the one in use; those that were silent a moment ago come last.
    pub fn in_turn(&self) -> Vec<Origin> {
        let (at, now) = (self.at.load(SeqCst) % self.all.len(), Instant::now());
        let avoided = self.avoided();
        let (silent, others): (Vec<_>, Vec<_>) = (at..at + self.all.len())
            .map(|index| index % self.all.len())
            .partition(|index| avoided[*index].is_some_and(|until| until > now));
        others.into_iter().chain(silent).map(|index| self.all[index].clone()).collect()
    }

    /// The one to ask next.
    pub fn current(&self) -> Origin {
        self.in_turn().swap_remove(0)
    }

    /// Leaves a replica that failed, unless somebody else has left it already.
    pub fn leave(&self, failed: &Origin) {
        let at = self.at.load(SeqCst);
        if self.all.get(at % self.all.len()) == Some(failed) {
            let next = (at + 1) % self.all.len();
            // A concurrent caller has already moved on.
            let _ = self.at.compare_exchange(at, next, SeqCst, SeqCst);
        }
    }

    /// Leaves a replica that did not answer in time, and asks it last for a while.
    pub fn avoid(&self, silent: &Origin) {
        self.leave(silent);
        let mut avoided = self.avoided();
        if let Some(index) = self.all.iter().position(|origin| origin == silent)
            && let Some(until) = avoided.get_mut(index)
        {
            if until.is_none_or(|until| until <= Instant::now()) {
                tracing::warn!(replica = %silent.authority, "control does not answer in time, and is tried last");
            }
            *until = Some(Instant::now() + AVOIDED);
        }
    }

    /// Whether every one of them was silent a moment ago.
    pub fn are_all_avoided(&self) -> bool {
        let now = Instant::now();
        self.avoided().iter().all(|until| until.is_some_and(|until| until > now))
    }

    /// Whether another replica than this one may well answer.
    pub fn has_other(&self, than: &Origin) -> bool {
        let (avoided, now) = (self.avoided(), Instant::now());
        let is_well = |until: &Option<Instant>| until.is_none_or(|until| until <= now);
        self.all.iter().zip(avoided.iter()).any(|(origin, until)| origin != than && is_well(until))
    }

    /// A replica sent the edge away, which it only does if another one is live. If all others were silent a moment
    /// ago, the first of them is tried again.
    pub fn sent_away(&self, from: &Origin) {
        if self.has_other(from) {
            return;
        }
        let mut avoided = self.avoided();
        let others = self.all.iter().zip(avoided.iter_mut()).filter(|(origin, _)| *origin != from);
        if let Some((_, until)) = others.min_by_key(|(_, until)| **until) {
            *until = None;
        }
    }

    fn avoided(&self) -> MutexGuard<'_, Vec<Option<Instant>>> {
        // Nothing panics while it is held; a poisoned list is as good as before.
        self.avoided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random place among them; without random bits the first will do.
fn somewhere(all: &[Origin]) -> usize {
    getrandom::u32().unwrap_or(0) as usize % all.len()
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
    fn only_tls_or_loopback_origins_are_accepted() {
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
    fn a_failure_moves_to_the_next_replica_once() {
        let origins =
            Origins::new("control_urls", &["https://a", "https://b", "https://c"].map(str::to_owned), true)
                .unwrap();
        let first = origins.current();
        let order = origins.in_turn();
        assert_eq!(order.len(), 3);
        origins.leave(&first);
        origins.leave(&first);
        assert_eq!(origins.current(), order[1]);
        origins.leave(&order[1]);
        origins.leave(&order[2]);
        assert_eq!(origins.current(), first);
    }

    #[test]
    fn a_silent_replica_comes_last_for_every_caller() {
        let urls = ["https://a", "https://b", "https://c"].map(str::to_owned);
        let origins = Origins::new("control_urls", &urls, true).unwrap();
        let others = origins.beside();
        let silent = origins.current();
        origins.avoid(&silent);
        for _ in 0..3 {
            for asked in [&origins, &others] {
                let order = asked.in_turn();
                assert_eq!((order.len(), &order[2]), (3, &silent));
                asked.leave(&order[0]);
            }
        }
        let order = origins.in_turn();
        for origin in &order {
            origins.avoid(origin);
        }
        assert_eq!(origins.in_turn().len(), 3, "who else is there to ask");
        // Sent away where all others were silent: of them the first is asked again, and the others stay last in line.
        origins.sent_away(&order[2]);
        let others = origins.avoided.lock().unwrap().iter().filter(|until| until.is_some()).count();
        assert_eq!((others, origins.current() == order[0]), (2, true));
        origins.sent_away(&order[2]);
        assert_eq!(origins.avoided.lock().unwrap().iter().filter(|until| until.is_some()).count(), 2);
        // As if the minute were over.
        origins.avoided.lock().unwrap().fill(Some(Instant::now()));
        let firsts: std::collections::HashSet<String> = (0..3)
            .map(|_| {
                let first = origins.current();
                origins.leave(&first);
                first.authority.to_string()
            })
            .collect();
        assert_eq!(firsts.len(), 3, "one that was silent long ago is asked again");
    }
}
