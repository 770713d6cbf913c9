//! The audit trail: what an entry says, and how entries are chained.

use serde_json::json;
use shared::{id::AccountId, time::UnixMillis};

/// The hash of an entry, which holds that of the entry before.
pub type Hash = [u8; 32];

/// The hash before the first entry of an account.
pub const START: Hash = [0; 32];

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Order of insertion: in the table, or in the queue while it has no place.
    pub seq: i64,
    /// The account whose resource it is.
    pub account: AccountId,
    /// When the request came.
    pub at: UnixMillis,
    /// The kind of key, or `commandLine`.
    pub actor_kind: String,
    /// Id of the operator or application.
    pub actor_id: Option<String>,
    /// Id of the key.
    pub key_id: Option<String>,
    /// The client's network.
    pub network: Option<String>,
    /// Id of the request.
    pub request_id: Option<String>,
    /// Method and route, or a command.
    pub operation: String,
    /// The kind of what was changed.
    pub resource: String,
    /// Its id.
    pub resource_id: String,
    /// What was before, as JSON; nothing of what was made.
    pub before: Option<String>,
    /// What is now, as JSON; nothing of what was removed.
    pub after: Option<String>,
    /// Its place in the chain of the account, from 1, and its hash; it gets them within seconds of the commit, or
    /// when somebody asks for a list before.
    pub place: Option<(i64, Hash)>,
}

impl Entry {
    /// Its hash at a place behind the entry with the hash `before`. Without the key nobody can make another that fits.
    #[must_use]
    pub fn hash(&self, key: &[u8; 32], number: i64, before: &Hash) -> Hash {
        let text = json!([
            number,
            self.account,
            self.at.0,
            self.actor_kind,
            self.actor_id,
            self.key_id,
            self.network,
            self.request_id,
            self.operation,
            self.resource,
            self.resource_id,
            self.before,
            self.after,
        ])
        .to_string();
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(before);
        hasher.update(text.as_bytes());
        hasher.finalize().into()
    }
}

/// Where a chain begins and ends, as stored next to the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// Number and hash of the newest entry.
    pub last: (i64, Hash),
    /// Number and hash of the entry before the oldest one that is kept.
    pub base: (i64, Hash),
}

impl Chain {
    /// Of an account without entries.
    pub const EMPTY: Self = Self { last: (0, START), base: (0, START) };

    /// Binds its ends to the account: whoever has no key can move neither.
    #[must_use]
    pub fn seal(&self, key: &[u8; 32], account: AccountId) -> Hash {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(account.as_str().as_bytes());
        for (number, hash) in [&self.last, &self.base] {
            hasher.update(&number.to_be_bytes()).update(hash);
        }
        hasher.finalize().into()
    }
}

/// What is wrong with a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An entry is missing.
    #[error("entry {0} is missing")]
    Missing(i64),
    /// An entry was changed, or stands where another stood.
    #[error("entry {0} was changed or moved")]
    Changed(i64),
    /// Where the chain begins or ends was changed.
    #[error("where the trail begins or ends was changed")]
    Ends,
    /// There are entries behind the last one.
    #[error("entry {0} lies behind the end of the chain")]
    Beyond(i64),
}

/// Checks the entries of a chain, in the order of their numbers.
#[derive(Debug)]
pub struct Verifier<'k> {
    key: &'k [u8; 32],
    chain: Chain,
    at: (i64, Hash),
}

impl<'k> Verifier<'k> {
    /// Of a chain as it is stored.
    #[must_use]
    pub const fn new(key: &'k [u8; 32], chain: Chain) -> Self {
        Self { key, chain, at: chain.base }
    }

    /// Checks the next entry.
    ///
    /// # Errors
    /// It does not follow the one before.
    pub fn next(&mut self, entry: &Entry) -> Result<(), Broken> {
        let expected = self.at.0 + 1;
        let Some((number, hash)) = entry.place else { return Err(Broken::Missing(expected)) };
        if number > self.chain.last.0 {
            return Err(Broken::Beyond(number));
        }
        if number != expected {
            return Err(Broken::Missing(expected));
        }
        if entry.hash(self.key, number, &self.at.1) != hash {
            return Err(Broken::Changed(number));
        }
        self.at = (number, hash);
        Ok(())
    }

    /// Checks that no entry is missing at the end; returns how many there were.
    ///
    /// # Errors
    /// The last entries are missing, or the end was changed.
    pub fn finish(self) -> Result<i64, Broken> {
        if self.at.0 < self.chain.last.0 {
            return Err(Broken::Missing(self.at.0 + 1));
        }
        if self.at != self.chain.last {
            return Err(Broken::Changed(self.at.0));
        }
        Ok(self.at.0 - self.chain.base.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn entry(n: i64) -> Entry {
        Entry {
            seq: n,
            account: AccountId::new(1, [1; 16]),
            at: UnixMillis(n),
            actor_kind: "operator".to_owned(),
            actor_id: Some("o".to_owned()),
            key_id: None,
            network: None,
            request_id: None,
            operation: "PUT /places/{id}".to_owned(),
            resource: "place".to_owned(),
            resource_id: n.to_string(),
            before: None,
            after: Some("{}".to_owned()),
            place: None,
        }
    }

    fn chain(count: i64) -> (Vec<Entry>, Chain) {
        let mut chain = Chain::EMPTY;
        let entries = (1..=count).map(|n| {
            let hash = entry(n).hash(&KEY, n, &chain.last.1);
            chain.last = (n, hash);
            Entry { place: Some((n, hash)), ..entry(n) }
        });
        (entries.collect(), chain)
    }

    fn verify(key: &[u8; 32], entries: &[Entry], chain: Chain) -> Result<i64, Broken> {
        let mut verifier = Verifier::new(key, chain);
        entries.iter().try_for_each(|entry| verifier.next(entry))?;
        verifier.finish()
    }

    #[test]
    fn a_whole_chain_holds_also_without_its_oldest_entries() {
        let (entries, mut whole) = chain(5);
        assert_eq!(verify(&KEY, &entries, whole), Ok(5));
        assert_eq!(verify(&KEY, &[], Chain::EMPTY), Ok(0));
        whole.base = entries[1].place.unwrap();
        assert_eq!(verify(&KEY, &entries[2..], whole), Ok(3));
    }

    #[test]
    fn what_was_done_to_a_chain_is_found() {
        let (entries, whole) = chain(4);
        let without =
            |at: usize| entries.iter().enumerate().filter(move |(n, _)| *n != at).map(|(_, e)| e.clone());
        for at in 0..4 {
            let left: Vec<Entry> = without(at).collect();
            assert_eq!(verify(&KEY, &left, whole), Err(Broken::Missing(at as i64 + 1)), "deleted {at}");
            let mut changed = entries.clone();
            changed[at].after = Some("{\"a\":1}".to_owned());
            assert_eq!(verify(&KEY, &changed, whole), Err(Broken::Changed(at as i64 + 1)), "changed {at}");
        }
        // Two that were exchanged with their numbers.
        let mut exchanged = entries.clone();
        (exchanged[1].place, exchanged[2].place) = (entries[2].place, entries[1].place);
        exchanged.swap(1, 2);
        assert_eq!(verify(&KEY, &exchanged, whole), Err(Broken::Changed(2)));
        // The end was cut off, and the stored end with it, by somebody who has no key.
        let cut = Chain { last: (3, [9; 32]), ..whole };
        assert_eq!(verify(&KEY, &entries[..3], cut), Err(Broken::Changed(3)));
        assert_eq!(
            verify(&KEY, &entries, Chain { last: (3, entries[2].place.unwrap().1), ..whole }),
            Err(Broken::Beyond(4))
        );
        assert_eq!(verify(&[8; 32], &entries, whole), Err(Broken::Changed(1)), "another key");
    }
}
