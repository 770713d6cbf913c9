//! Which pages and files of short domains an edge holds: a digest for each group of domains.
//!
//! A domain may have 248 KiB of them, and they rarely change. So an edge says in its hello what it holds, and the welcome
//! leaves out the pages and files of groups that are the same. An edge or a control of a release before says nothing of
//! it: then the welcome has them all. Certificates have digests of their own, by the same groups of hosts.
//!
//! The event of a change has all pages and files of its domain, also where only another setting changed. It is stored and encoded
//! once for all edges and for the view in Redis. An edge of a release before takes an event without them for a domain that has
//! none, so leaving them out would take a second encoding of each batch, for a change that is rare.

use crate::short_url::ShortDomain;

/// Groups of domains: if one domain changed while an edge was away, the edge is sent those of a 64th of all domains.
pub const GROUPS: u8 = 64;

/// The group of a host, and a digest of what is held of it.
pub type Digest = (u8, blake3::Hash);

/// The group of a domain, below [`GROUPS`].
#[must_use]
pub fn group_of(domain: &ShortDomain) -> u8 {
    group_of_host(domain.host.as_str())
}

/// The group of a host, below [`GROUPS`].
#[must_use]
pub fn group_of_host(host: &str) -> u8 {
    (crc32c::crc32c(host.as_bytes()) % u32::from(GROUPS)) as u8
}

/// A digest for each group, 0 for one without pages and files; an empty list if all are without. The order of domains
/// does not matter.
#[must_use]
pub fn digests<'a>(domains: impl IntoIterator<Item = &'a ShortDomain>) -> Vec<u64> {
    let has_some = |domain: &&ShortDomain| domain.files.is_some() || domain.pages.is_some();
    let of = |domain: &ShortDomain| (group_of(domain), digest_of(domain));
    digests_of(domains.into_iter().filter(has_some).map(of).collect())
}

/// The digest of a certificate, with its chain in PEM. The same certificate has the same key.
#[must_use]
pub fn digest_of_certificate(host: &str, chain: &str) -> Digest {
    let mut hash = blake3::Hasher::new();
    // No host has such a byte, so that nothing else reads the same.
    hash.update(host.as_bytes()).update(&[0]).update(chain.as_bytes());
    (group_of_host(host), hash.finalize())
}

/// A digest for each group, as [`digests`] gives them.
#[must_use]
pub fn digests_of(mut each: Vec<Digest>) -> Vec<u64> {
    if each.is_empty() {
        return Vec::new();
    }
    each.sort_unstable_by_key(|(group, digest)| (*group, *digest.as_bytes()));
    let mut digests = vec![0_u64; usize::from(GROUPS)];
    for run in each.chunk_by(|(one, _), (other, _)| one == other) {
        // Not a sum: who owns two domains of a group could choose their pages such that a change of a third one is not seen.
        let mut hash = blake3::Hasher::new();
        for (_, digest) in run {
            hash.update(digest.as_bytes());
        }
        if let Some(place) = run.first().and_then(|(group, _)| digests.get_mut(usize::from(*group))) {
            let digest = hash.finalize();
            *place = digest.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        }
    }
    digests
}

/// The groups that are the same by their digests.
#[must_use]
pub fn same(held: &[u64], now: &[u64]) -> Vec<u8> {
    let groups = held.iter().zip(now).zip(0..GROUPS);
    groups.filter(|((held, now), _)| held == now && **held != 0).map(|(_, group)| group).collect()
}

/// A domain without pages and files.
#[must_use]
pub fn without(domain: &ShortDomain) -> ShortDomain {
    ShortDomain { files: None, pages: None, ..domain.clone() }
}

fn digest_of(domain: &ShortDomain) -> blake3::Hash {
    // Texts and numbers always serialise.
    let text = serde_json::to_vec(&(&domain.host, &domain.files, &domain.pages)).unwrap_or_default();
    blake3::hash(&text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        domain_files::{DomainFiles, JsonFile, Robots},
        pages::Pages,
        short_url::Scheme,
    };

    fn domain(host: &str, name: Option<&str>) -> ShortDomain {
        let pages = name.map(|name| Arc::new(Pages { name: Some(name.into()), ..Pages::default() }));
        ShortDomain { pages, ..ShortDomain::new(Scheme::Https, host).unwrap() }
    }

    #[test]
    fn only_groups_with_the_same_pages_and_files_are_left_out() {
        let held = [domain("a.gg", Some("A")), domain("b.gg", Some("B")), domain("c.gg", None)];
        let [a, b, _] = held.each_ref().map(group_of);
        assert_ne!(a, b);
        let mut both = [a, b];
        both.sort_unstable();
        let of = digests(&held);
        assert_eq!(same(&of, &digests(held.iter().rev())), both, "in any order");
        let changed = [domain("a.gg", Some("A")), domain("b.gg", Some("C"))];
        assert_eq!(same(&of, &digests(&changed)), [a], "other pages");
        let files = Arc::new(DomainFiles { robots: Robots::All, ..DomainFiles::default() });
        let changed = [ShortDomain { files: Some(files), ..held[0].clone() }, held[1].clone()];
        assert_eq!(same(&of, &digests(&changed)), [b], "other files");
        let redirects = held.clone().map(|domain| ShortDomain { redirect_max_age: Some(7), ..domain });
        assert_eq!(same(&of, &digests(&redirects)), both, "other settings");
        assert!(digests(&[held[2].clone()]).is_empty(), "nothing to leave out");
        for other in [Vec::new(), vec![7], vec![u64::MAX; 300]] {
            assert!(same(&of, &other).is_empty() && same(&other, &of).is_empty(), "{other:?}");
        }
    }

    #[test]
    fn what_came_over_the_wire_has_the_same_digest() {
        let file = JsonFile::new(&serde_json::json!({"b": [1.0, 1e30, "ä\u{7f}"], "a": {}}));
        let files = Arc::new(DomainFiles { asset_links: Some(file), ..DomainFiles::default() });
        let sent = ShortDomain { files: Some(files), ..domain("tn.gg", Some("Søren & Co")) };
        let read: ShortDomain = serde_json::from_slice(&serde_json::to_vec(&sent).unwrap()).unwrap();
        assert_eq!(digests(&[read]), digests(&[sent]));
    }
}
