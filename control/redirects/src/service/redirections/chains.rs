//! Chains of our own short URLs: none may return to where it begins, nor go through too many.

use std::collections::{HashMap, HashSet};

use shared::{
    id::{ProductId, ThngId},
    redirect::{Redirect, RedirectKey},
    short_url::ShortDomain,
    target::{TagValues, Target},
};

use super::plan::key_of;
use crate::{
    domain::redirection::{MAX_CHAIN, Redirection, Writable},
    error::{ChainFault, RedirectsError, ServiceError},
    store::{Conn, redirections as table},
};

/// Links of one look-up.
const LOOK_UP: usize = 1_000;

/// Host and path of a target with its tags expanded, which may be a short URL.
pub(super) type Next = (String, String);

/// Where a target of a redirection leads.
pub(super) fn next_of(redirect: &Redirect, target: &Target) -> Option<Next> {
    target.as_short_url(&TagValues {
        short_id: redirect.short_id.as_str(),
        platform_id: redirect.platform_id.as_str(),
        thng_id: redirect.thng_id.as_ref().map(ThngId::as_str),
        product_id: redirect.product_id.as_ref().map(ProductId::as_str),
    })
}

/// Where a redirection leads, at whatever time.
pub(super) fn nexts_of(redirect: &Redirect) -> Vec<Next> {
    redirect.urls().filter_map(|url| next_of(redirect, &Target::parse(url).ok()?)).collect()
}

/// Which short URLs lead to which others, as far as one request needs it. All its links share it, so each short URL is looked
/// up once.
pub(super) struct Chains<'a> {
    domains: &'a [ShortDomain],
    /// The short URLs that one leads to: two for a link with an ended page.
    known: HashMap<RedirectKey, Vec<RedirectKey>>,
}

impl<'a> Chains<'a> {
    /// Knows the links that the request writes, as they will be.
    pub(super) fn new(
        domains: &'a [ShortDomain],
        written: impl Iterator<Item = (RedirectKey, Vec<Next>)>,
    ) -> Self {
        let mut chains = Self { domains, known: HashMap::new() };
        for (key, nexts) in written {
            chains.insert(key, nexts);
        }
        chains
    }

    fn insert(&mut self, key: RedirectKey, nexts: Vec<Next>) {
        let keys = nexts.into_iter().filter_map(|next| self.ours(next)).collect();
        self.known.insert(key, keys);
    }

    /// The short URL of this service that a target leads to.
    fn ours(&self, (host, path): Next) -> Option<RedirectKey> {
        let domain = self.domains.iter().find(|domain| domain.host.as_str() == host)?;
        Some(key_of(domain, &domain.short_id_in(&path)?))
    }

    /// Looks up what follows from some targets: all links of one step together.
    pub(super) async fn load(&mut self, conn: &mut Conn, starts: Vec<Next>) -> Result<(), ServiceError> {
        let starts: HashSet<RedirectKey> = starts.into_iter().filter_map(|next| self.ours(next)).collect();
        loop {
            let unknown = self.unknown(&starts);
            if unknown.is_empty() {
                return Ok(());
            }
            for (domain, folded) in &by_domain(&unknown) {
                for folded in folded.chunks(LOOK_UP) {
                    let found = table::list_any(conn, domain, folded).await?;
                    for item in found {
                        let key = key_of(&item.domain, &item.redirect.short_id);
                        self.insert(key, nexts_of(&item.redirect));
                    }
                }
            }
            self.end(unknown);
        }
    }

    /// The short URLs within the longest chain from these that are not known yet.
    fn unknown(&self, starts: &HashSet<RedirectKey>) -> HashSet<RedirectKey> {
        let (mut step, mut unknown) = (starts.clone(), HashSet::new());
        for _ in 0..MAX_CHAIN {
            let mut further = HashSet::new();
            for key in step {
                match self.known.get(&key) {
                    Some(keys) => further.extend(keys.iter().cloned()),
                    None => {
                        unknown.insert(key);
                    }
                }
            }
            step = further;
        }
        unknown
    }

    /// Notes that the short URLs of which nothing was found lead nowhere.
    fn end(&mut self, unknown: HashSet<RedirectKey>) {
        for key in unknown {
            self.known.entry(key).or_default();
        }
    }

    /// Checks a target, which was loaded.
    ///
    /// Breadth-first: a link with an ended page has two successors; within a step each key is looked up once.
    pub(super) fn check(&self, start: &RedirectKey, next: Option<Next>) -> Result<(), ChainFault> {
        let mut step: HashSet<RedirectKey> = next.into_iter().filter_map(|next| self.ours(next)).collect();
        for _ in 0..MAX_CHAIN {
            if step.is_empty() {
                return Ok(());
            }
            if step.contains(start) {
                return Err(ChainFault::Loop);
            }
            step = step.iter().filter_map(|key| self.known.get(key)).flatten().cloned().collect();
        }
        Err(ChainFault::TooLong)
    }
}

fn by_domain(keys: &HashSet<RedirectKey>) -> HashMap<String, Vec<String>> {
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    for key in keys {
        found.entry(key.domain.to_string()).or_default().push(key.folded.to_string());
    }
    found
}

/// Checks the chains of redirections that a request changes.
///
/// # Errors
/// 400 for the first that returns or is too long.
pub(super) async fn check_changed(
    conn: &mut Conn,
    domains: &[ShortDomain],
    changed: &[(RedirectKey, Redirection)],
    writable: &Writable,
) -> Result<(), ServiceError> {
    let written = changed.iter().map(|(key, item)| (key.clone(), nexts_of(&item.redirect)));
    let mut chains = Chains::new(domains, written);
    let starts = changed
        .iter()
        .flat_map(|(_, item)| writable.targets().filter_map(|(_, target)| next_of(&item.redirect, target)));
    chains.load(conn, starts.collect()).await?;
    for (key, item) in changed {
        for (member, target) in writable.targets() {
            let checked = chains.check(key, next_of(&item.redirect, target));
            checked.map_err(|fault| RedirectsError::Chain { member, fault })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use shared::short_url::Scheme;

    use super::*;

    fn next(id: &str) -> Next {
        ("tn.gg".to_owned(), id.to_owned())
    }

    fn key(id: &str) -> RedirectKey {
        RedirectKey::new("tn.gg", &id.to_ascii_uppercase())
    }

    /// Answers look-ups until nothing is unknown; gives how many there were, and of how many links.
    fn load(
        chains: &mut Chains<'_>,
        starts: &[&str],
        stored: &HashMap<String, Vec<String>>,
    ) -> (usize, usize) {
        let starts = starts.iter().map(|id| key(id)).collect();
        let (mut look_ups, mut links) = (0, 0);
        loop {
            let unknown = chains.unknown(&starts);
            if unknown.is_empty() {
                return (look_ups, links);
            }
            look_ups += 1;
            links += unknown.len();
            for key in &unknown {
                if let Some(nexts) = stored.get(&*key.folded) {
                    chains.insert(key.clone(), nexts.iter().map(|id| next(id)).collect());
                }
            }
            chains.end(unknown);
        }
    }

    #[test]
    fn links_with_one_chain_look_it_up_once() {
        let domains = [ShortDomain::new(Scheme::Https, "tn.gg").unwrap()];
        // Each link of a tree has a target and an ended page, down to some that lead elsewhere.
        let mut stored = HashMap::new();
        for n in 1..16_u32 {
            stored.insert(format!("N{n}"), vec![format!("N{}", 2 * n), format!("N{}", 2 * n + 1)]);
        }
        let changed: Vec<RedirectKey> = (0..1_000).map(|n| key(&format!("C{n}"))).collect();
        let written = changed.iter().map(|key| (key.clone(), vec![next("N2"), next("N3")]));
        let mut chains = Chains::new(&domains, written);
        assert_eq!(load(&mut chains, &["N2", "N3"], &stored), (4, 30));
        for key in &changed {
            assert_eq!(chains.check(key, Some(next("n2"))), Ok(()));
        }
        // What is known is not looked up again; the links of the deepest step lead nowhere.
        assert_eq!(load(&mut chains, &["N2", "C7"], &stored), (0, 0));
    }

    #[test]
    fn chains_are_short_and_do_not_return() {
        let domains = [ShortDomain::new(Scheme::Https, "tn.gg").unwrap()];
        let stored: HashMap<String, Vec<String>> =
            (1..7_u32).map(|n| (format!("N{n}"), vec![format!("N{}", n + 1)])).collect();
        let mut chains = Chains::new(&domains, [(key("C"), vec![next("N3")])].into_iter());
        load(&mut chains, &["N1", "N3", "C"], &stored);
        let check = |start: &str, to: Next| chains.check(&key(start), Some(to));
        assert_eq!(check("A", next("N4")), Ok(()), "with its own, five short URLs");
        assert_eq!(check("A", next("N1")), Err(ChainFault::TooLong));
        assert_eq!(
            check("A", next("C")),
            Err(ChainFault::TooLong),
            "the link that is written counts as well"
        );
        for (start, to) in [("C", "c"), ("N5", "C"), ("N3", "n3")] {
            assert_eq!(check(start, next(to)), Err(ChainFault::Loop), "{start} by {to}");
        }
        assert_eq!(check("A", ("example.com".to_owned(), "N1".to_owned())), Ok(()), "another host");
        assert_eq!(chains.check(&key("A"), None), Ok(()));
    }
}
