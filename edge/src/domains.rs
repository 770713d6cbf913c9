//! The short domains that this edge answers for, and what the platform withholds on them.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use arc_swap::{ArcSwap, Guard};
use foldhash::quality::RandomState;
use shared::{
    short_url::{Scheme, ShortDomain},
    wire::{
        contents,
        stream::{Rev, Welcome},
    },
    withheld::Withheld,
};

use crate::withheld::WithheldLinks;

/// Short domains by host, and what is withheld on them, as one version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    by_host: HashMap<Box<str>, Arc<ShortDomain>, RandomState>,
    /// Every change of a domain up to this revision is in it.
    domains_as_of: Rev,
    /// Digests of the pages and files, once they were asked for.
    contents: OnceLock<Vec<u64>>,
    /// What the platform withholds.
    pub(crate) withheld: WithheldLinks,
    /// Every change of it up to this revision is in it.
    withheld_as_of: Rev,
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

    /// Takes over the whole table of a `Welcome` as of a revision or later, with what is withheld then; without such a list
    /// the one of before stays.
    pub(crate) fn replace(&self, as_of: Rev, domains: &[ShortDomain], withheld: Option<&[Withheld]>) {
        let by_host = domains.iter().map(|d| (d.host.as_str().into(), Arc::new(d.clone()))).collect();
        let (withheld_as_of, withheld) = match withheld {
            Some(all) => (as_of, WithheldLinks::of(all)),
            // The next change may be one of another history.
            None => (0, self.0.load().withheld.clone()),
        };
        let (domains_as_of, contents) = (as_of, OnceLock::new());
        self.0.store(Arc::new(Table { by_host, domains_as_of, contents, withheld, withheld_as_of }));
    }

    /// Every domain.
    pub(crate) fn all(&self) -> Vec<ShortDomain> {
        self.0.load().by_host.values().map(|domain| ShortDomain::clone(domain)).collect()
    }

    /// Every domain, with files and pages of at most so many bytes in all: the others come with the next contact to control.
    pub(crate) fn all_with_files(&self, mut most_bytes: usize) -> Vec<ShortDomain> {
        let mut all = self.all();
        for domain in &mut all {
            let files = domain.files.as_ref().map_or(0, |files| files.size_bytes());
            let pages = domain.pages.as_ref().map_or(0, |pages| pages.size_bytes());
            match most_bytes.checked_sub(files + pages) {
                Some(left) => most_bytes = left,
                None => (domain.files, domain.pages) = (None, None),
            }
        }
        all
    }

    /// Digests of the pages and files of all domains.
    pub(crate) fn contents(&self) -> Vec<u64> {
        let table = self.0.load();
        let digests = || contents::digests(table.by_host.values().map(|domain| &**domain));
        table.contents.get_or_init(digests).clone()
    }

    /// The domains of a welcome, with the pages and files that are held where it leaves them out.
    pub(crate) fn completed(&self, welcome: &Welcome) -> Vec<ShortDomain> {
        let (table, mut domains) = (self.0.load(), welcome.domains.clone());
        for domain in domains.iter_mut().filter(|of| welcome.kept.contains(&contents::group_of(of))) {
            if let Some(held) = table.by_host.get(domain.host.as_str()) {
                (domain.files, domain.pages) = (held.files.clone(), held.pages.clone());
            }
        }
        domains
    }

    /// Whether the account of a domain omits personal data.
    pub(crate) fn omit_personal_data(&self) -> bool {
        self.0.load().by_host.values().any(|domain| domain.omits_personal_data())
    }

    /// Everything that is withheld.
    pub(crate) fn withheld(&self) -> Vec<Withheld> {
        self.0.load().withheld.all()
    }

    /// Adds, changes or removes one domain; a change that is in the table already does nothing, so that an older setting for personal
    /// data does not come back while older changes are applied.
    pub(crate) fn upsert(&self, rev: Rev, domain: &ShortDomain) {
        let mut table = Table::clone(&self.0.load());
        if rev <= table.domains_as_of {
            return;
        }
        table.contents = OnceLock::new();
        if domain.removed {
            table.by_host.remove(domain.host.as_str());
        } else {
            table.by_host.insert(domain.host.as_str().into(), Arc::new(domain.clone()));
        }
        self.0.store(Arc::new(table));
    }

    /// Something is withheld from a revision on, or no longer; a change that is in the list already does nothing, so that
    /// nothing is released for a moment while older changes are applied.
    ///
    /// Only the one task that follows the stream calls this and [`Self::upsert`].
    pub(crate) fn withhold(&self, rev: Rev, what: &Withheld, is_withheld: bool) {
        let mut table = Table::clone(&self.0.load());
        if rev <= table.withheld_as_of {
            return;
        }
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
    use shared::{
        domain_files::{DomainFiles, JsonFile},
        pages::Pages,
        personal_data::PersonalData,
    };

    use super::*;

    #[test]
    fn older_changes_release_nothing() {
        let domains = Domains::default();
        let what = Withheld::Host("evil.example".into());
        domains.replace(7, &[], Some(std::slice::from_ref(&what)));
        domains.withhold(5, &what, false);
        domains.withhold(7, &what, false);
        assert_eq!(domains.withheld(), std::slice::from_ref(&what), "released at 5, withheld again at 7");
        domains.withhold(8, &what, false);
        assert_eq!(domains.withheld(), []);
        // An older control sends no list; its revisions may be of another history.
        domains.replace(0, &[], None);
        domains.withhold(1, &what, true);
        assert_eq!(domains.withheld(), [what]);
    }

    #[test]
    fn older_changes_bring_no_older_domain_back() {
        let domains = Domains::default();
        let of = |kept: PersonalData| {
            let domain = ShortDomain::new(Scheme::Https, "tn.gg").unwrap();
            ShortDomain { personal_data: Some(kept), ..domain }
        };
        let kept = || domains.all()[0].personal_data;
        domains.replace(7, &[of(PersonalData::None)], None);
        for rev in [5, 7] {
            domains.upsert(rev, &of(PersonalData::Full));
            assert_eq!(kept(), Some(PersonalData::None), "full at {rev}, none again at 7");
        }
        domains.upsert(8, &of(PersonalData::Full));
        assert_eq!(kept(), Some(PersonalData::Full));
    }

    #[test]
    fn a_removed_domain_is_gone_and_may_come_back() {
        let domains = Domains::default();
        let domain = ShortDomain::new(Scheme::Https, "tn.gg").unwrap();
        domains.replace(7, std::slice::from_ref(&domain), None);
        let removed = ShortDomain { removed: true, ..domain.clone() };
        domains.upsert(7, &removed);
        assert_eq!(domains.all(), std::slice::from_ref(&domain), "an older change");
        domains.upsert(8, &removed);
        assert!(domains.all().is_empty());
        domains.upsert(9, &domain);
        assert_eq!(domains.all(), [domain]);
    }

    #[test]
    fn files_are_left_out_beyond_a_size() {
        let domains = Domains::default();
        let file = JsonFile::new(&serde_json::json!(["0123456789"]));
        let files = Arc::new(DomainFiles { asset_links: Some(file), ..DomainFiles::default() });
        let size = files.size_bytes();
        let known = ["a.gg", "b.gg", "c.gg"].map(|host| ShortDomain {
            files: Some(files.clone()),
            ..ShortDomain::new(Scheme::Https, host).unwrap()
        });
        domains.replace(1, &known, None);
        for (most, kept) in [(0, 0), (size - 1, 0), (size, 1), (2 * size + 1, 2), (usize::MAX, 3)] {
            let all = domains.all_with_files(most);
            assert_eq!(all.iter().filter(|domain| domain.files.is_some()).count(), kept, "{most}");
            assert_eq!(all.len(), 3);
        }
        let pages = Arc::new(Pages { name: Some("0123456789".into()), ..Pages::default() });
        let size = size + pages.size_bytes();
        domains.replace(2, &known.map(|domain| ShortDomain { pages: Some(pages.clone()), ..domain }), None);
        for (most, kept) in [(0, 0), (size - 1, 0), (size, 1), (2 * size + 1, 2), (usize::MAX, 3)] {
            let all = domains.all_with_files(most);
            let are_whole = |domain: &&ShortDomain| domain.files.is_some() && domain.pages.is_some();
            assert_eq!(all.iter().filter(are_whole).count(), kept, "{most}");
            assert_eq!(all.iter().filter(|domain| domain.pages.is_some()).count(), kept, "{most}");
        }
    }

    #[test]
    fn hosts_are_found_exactly() {
        let domains = Domains::default();
        let known = [
            ShortDomain::new(Scheme::Https, "tn.gg").unwrap(),
            ShortDomain::new(Scheme::Http, "127.0.0.1:8081").unwrap(),
        ];
        domains.replace(0, &known, None);
        domains.upsert(1, &ShortDomain::new(Scheme::Http, "dev.test").unwrap());
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
