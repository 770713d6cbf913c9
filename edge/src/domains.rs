//! The short domains that this edge answers for, and what the platform withholds on them.

use std::{collections::HashMap, sync::Arc};

use arc_swap::{ArcSwap, Guard};
use foldhash::quality::RandomState;
use shared::{
    short_url::{Scheme, ShortDomain},
    withheld::Withheld,
};

use crate::withheld::WithheldLinks;

/// Short domains by host, and what is withheld on them, as one version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    by_host: HashMap<Box<str>, Arc<ShortDomain>, RandomState>,
    /// What the platform withholds.
    pub(crate) withheld: WithheldLinks,
}

impl Table {
    /// Whether no domain is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_host.is_empty()
    }
}

/// The current table; read on every request, written when control changes it.
#[derive(Debug, Default)]
pub(crate) struct Domains(ArcSwap<Table>);

impl Domains {
    /// The table of this moment.
    pub(crate) fn load(&self) -> Guard<Arc<Table>> {
        self.0.load()
    }

    /// Takes over the whole table of a `Welcome`; without a list of what is withheld, the one of before stays.
    pub(crate) fn replace(&self, domains: &[ShortDomain], withheld: Option<&[Withheld]>) {
        let by_host = domains.iter().map(|d| (d.host.as_str().into(), Arc::new(d.clone()))).collect();
        let withheld = match withheld {
            Some(all) => WithheldLinks::of(all),
            None => self.0.load().withheld.clone(),
        };
        self.0.store(Arc::new(Table { by_host, withheld }));
    }

    /// Every domain.
    pub(crate) fn all(&self) -> Vec<ShortDomain> {
        self.0.load().by_host.values().map(|domain| ShortDomain::clone(domain)).collect()
    }

    /// Everything that is withheld.
    pub(crate) fn withheld(&self) -> Vec<Withheld> {
        self.0.load().withheld.all()
    }

    /// Adds or changes one domain.
    pub(crate) fn upsert(&self, domain: &ShortDomain) {
        let mut table = Table::clone(&self.0.load());
        table.by_host.insert(domain.host.as_str().into(), Arc::new(domain.clone()));
        self.0.store(Arc::new(table));
    }

    /// Something is withheld from now on, or no longer.
    ///
    /// Only the one task that follows the stream calls this and [`Self::upsert`].
    pub(crate) fn withhold(&self, what: &Withheld, is_withheld: bool) {
        let mut table = Table::clone(&self.0.load());
        table.withheld.put(what, is_withheld);
        self.0.store(Arc::new(table));
    }
}

/// The domain that a request's host names: without case, with the default port of its scheme or without.
pub(crate) fn find<'a>(table: &'a Table, host: &str) -> Option<&'a Arc<ShortDomain>> {
    if host.bytes().any(|b| b.is_ascii_uppercase()) {
        return find(table, &host.to_ascii_lowercase());
    }
    table.by_host.get(host).or_else(|| {
        let (name, scheme) = match host.strip_suffix(":443") {
            Some(name) => (name, Scheme::Https),
            None => (host.strip_suffix(":80")?, Scheme::Http),
        };
        table.by_host.get(name).filter(|domain| domain.scheme == scheme)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_exactly() {
        let domains = Domains::default();
        let known = [
            ShortDomain::new(Scheme::Https, "tn.gg").unwrap(),
            ShortDomain::new(Scheme::Http, "127.0.0.1:8081").unwrap(),
        ];
        domains.replace(&known, None);
        domains.upsert(&ShortDomain::new(Scheme::Http, "dev.test").unwrap());
        for (host, expected, why) in [
            ("tn.gg", Some("tn.gg"), "as it is"),
            ("TN.gg", Some("tn.gg"), "without case"),
            ("tn.gg:443", Some("tn.gg"), "its default port"),
            ("tn.gg:80", None, "another scheme's port"),
            ("tn.gg:8443", None, "another port"),
            ("dev.test:80", Some("dev.test"), "its default port"),
            ("127.0.0.1:8081", Some("127.0.0.1:8081"), "with its port"),
            ("127.0.0.1", None, "without its port"),
            ("tn.gg.", None, "not ours exactly"),
            ("xtn.gg", None, "not ours"),
            ("", None, "empty"),
        ] {
            let table = domains.load();
            assert_eq!(find(&table, host).map(|d| d.host.as_str()), expected, "{why}: {host}");
        }
    }
}
