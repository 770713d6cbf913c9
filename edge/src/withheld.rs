//! What the platform withholds, as a request asks for it: empty lists cost three comparisons.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::Arc,
};

use foldhash::quality::RandomState;
use shared::{
    id::AccountId,
    problem::Code,
    redirect::RedirectKey,
    short_url::ShortDomain,
    withheld::{Withheld, and_parents, host_of},
};
use visitor_pages::Brand;

use crate::cache::KeyRef;

type Set<T> = HashSet<T, RandomState>;
/// Folded short ids by domain.
type Links = HashMap<Arc<str>, Arc<Set<Arc<str>>>, RandomState>;

/// Accounts, links and hosts that are withheld. Cheap to clone: a change copies the accounts, the hosts, or the links of one
/// domain.
#[derive(Debug, Clone, Default)]
pub(crate) struct WithheldLinks {
    accounts: Arc<Set<AccountId>>,
    /// Folded short ids by domain, so that a look-up needs no key of its own.
    links: Arc<Links>,
    hosts: Arc<Set<Box<str>>>,
}

impl WithheldLinks {
    /// Exactly these.
    pub(crate) fn of(all: &[Withheld]) -> Self {
        let mut withheld = Self::default();
        all.iter().for_each(|what| withheld.put(what, true));
        withheld
    }

    /// Everything that is withheld, in no order.
    pub(crate) fn all(&self) -> Vec<Withheld> {
        let accounts = self.accounts.iter().copied().map(Withheld::Account);
        let links = self.links.iter().flat_map(|(domain, all)| {
            let key = |folded: &Arc<str>| RedirectKey { domain: domain.clone(), folded: folded.clone() };
            all.iter().map(move |folded| Withheld::Link(key(folded)))
        });
        let hosts = self.hosts.iter().cloned().map(Withheld::Host);
        accounts.chain(links).chain(hosts).collect()
    }

    /// Adds or removes one.
    pub(crate) fn put(&mut self, what: &Withheld, is_withheld: bool) {
        match what {
            Withheld::Account(account) => set(&mut self.accounts, account, is_withheld),
            Withheld::Link(key) => self.put_link(key, is_withheld),
            Withheld::Host(host) => set(&mut self.hosts, host, is_withheld),
        }
    }

    fn put_link(&mut self, key: &RedirectKey, is_withheld: bool) {
        let all = Arc::make_mut(&mut self.links);
        let links = Arc::make_mut(all.entry(key.domain.clone()).or_default());
        if is_withheld {
            links.insert(key.folded.clone());
        } else {
            links.remove(&key.folded);
        }
        if links.is_empty() {
            all.remove(&key.domain);
        }
    }

    /// What pages of a domain show of its account.
    pub(crate) fn brand(&self, domain: &ShortDomain) -> Brand {
        let is_suspended = self.is_suspended(domain.account.as_ref());
        Brand::of(domain, is_suspended, |url| self.target(url).is_some())
    }

    /// Whether an account is suspended.
    fn is_suspended(&self, account: Option<&AccountId>) -> bool {
        !self.accounts.is_empty() && account.is_some_and(|account| self.accounts.contains(account))
    }

    /// Why a link is not served, whatever it leads to.
    pub(crate) fn link(&self, account: Option<&AccountId>, key: KeyRef<'_>) -> Option<Code> {
        if self.is_suspended(account) {
            return Some(Code::Suspended);
        }
        let is_taken_down = !self.links.is_empty()
            && self.links.get(key.domain).is_some_and(|links| links.contains(key.folded));
        is_taken_down.then_some(Code::TakenDown)
    }

    /// Why nobody is led to a URL.
    pub(crate) fn target(&self, location: &[u8]) -> Option<Code> {
        if self.hosts.is_empty() {
            return None;
        }
        let host = host_of(std::str::from_utf8(location).ok()?)?;
        and_parents(&host).any(|host| self.hosts.contains(host)).then_some(Code::TakenDown)
    }
}

fn set<T: Clone + Eq + Hash>(all: &mut Arc<Set<T>>, one: &T, is_withheld: bool) {
    let all = Arc::make_mut(all);
    if is_withheld {
        all.insert(one.clone());
    } else {
        all.remove(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_copies_the_links_of_one_domain() {
        let of = |domain: &str| Withheld::Link(RedirectKey::new(domain, "ONE"));
        let published = WithheldLinks::of(&[of("a.gg"), of("b.gg")]);
        let mut next = published.clone();
        next.put(&Withheld::Link(RedirectKey::new("a.gg", "TWO")), true);
        let is_shared = |domain: &str| Arc::ptr_eq(&published.links[domain], &next.links[domain]);
        assert!(!is_shared("a.gg") && is_shared("b.gg"));
        assert!(Arc::ptr_eq(&published.hosts, &next.hosts));
        assert_eq!((published.all().len(), next.all().len()), (2, 3));
    }

    #[test]
    fn accounts_links_and_hosts_are_withheld_until_they_are_released() {
        let account = AccountId::new(1, [1; 16]);
        let (key, other) = (RedirectKey::new("tn.gg", "ONE"), RedirectKey::new("tn.gg", "TWO"));
        let host = |host: &str| Withheld::Host(host.into());
        let all = [
            Withheld::Account(account),
            Withheld::Link(key.clone()),
            host("evil.example"),
            host("192.0.2.1"),
        ];
        let mut withheld = WithheldLinks::of(&all);
        assert_eq!(withheld.link(Some(&account), KeyRef::of(&other)), Some(Code::Suspended));
        assert_eq!(withheld.link(None, KeyRef::of(&key)), Some(Code::TakenDown));
        assert_eq!(withheld.link(Some(&AccountId::new(2, [2; 16])), KeyRef::of(&other)), None);
        for (location, expected) in [
            ("https://evil.example/a", Some(Code::TakenDown)),
            ("https://www.EVIL.example./a", Some(Code::TakenDown)),
            ("https://notevil.example/", None),
            ("https://evil.example.good.example/", None),
            ("https://good.example/?evil.example", None),
            ("http://192.0.2.1:8080/a", Some(Code::TakenDown)),
            ("http://[::ffff:192.0.2.1]/", Some(Code::TakenDown)),
            ("http://[64:ff9b::c000:201]/", Some(Code::TakenDown)),
            ("http://3221225985/", Some(Code::TakenDown)),
            ("http://192.0.2.2/", None),
        ] {
            assert_eq!(withheld.target(location.as_bytes()), expected, "{location}");
        }
        let mut kept = withheld.all();
        kept.sort();
        assert_eq!(kept, {
            let mut all = all.to_vec();
            all.sort();
            all
        });
        all.iter().for_each(|what| withheld.put(what, false));
        assert_eq!(withheld.link(Some(&account), KeyRef::of(&key)), None);
        assert_eq!(withheld.target(b"https://evil.example/a"), None);
        assert_eq!(withheld.all(), []);
    }
}
