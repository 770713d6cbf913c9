//! Keys of the cache, borrowed from a request.

use moka::Equivalent;
use shared::redirect::RedirectKey;

/// A borrowed key: look-ups without allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyRef<'a> {
    // The same fields in the same order as `RedirectKey`, so that both hash alike.
    pub(crate) domain: &'a str,
    pub(crate) folded: &'a str,
}

impl<'a> KeyRef<'a> {
    /// Borrows a key.
    pub(crate) fn of(key: &'a RedirectKey) -> Self {
        Self { domain: &key.domain, folded: &key.folded }
    }

    /// Whether it is that of a level of a Digital Link.
    pub(super) fn is_level(&self) -> bool {
        self.folded.starts_with("01/")
    }
}

impl Equivalent<RedirectKey> for KeyRef<'_> {
    fn equivalent(&self, key: &RedirectKey) -> bool {
        *self.folded == *key.folded && *self.domain == *key.domain
    }
}
