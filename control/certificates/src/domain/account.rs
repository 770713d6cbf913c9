//! The account of this service at an authority, as it is stored.

use shared::time::UnixMillis;

/// Shortest time between two accounts that take the place of one which the authority no longer accepts: authorities bound how many
/// an address makes, and each costs all orders under way.
const PAUSE_MS: i64 = 24 * 60 * 60 * 1_000;

/// What is stored of an account.
///
/// Its text is the credentials, encrypted; or the time at which they took the place of others, a blank and they; or that time alone
/// while the authority accepts no account. A release without such times makes another account of the last two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredAccount<'a> {
    /// When an account last took the place of another one; `None` for the first one.
    pub replaced_at: Option<UnixMillis>,
    /// The credentials, encrypted; `None`: the authority does not accept them any more.
    pub sealed: Option<&'a str>,
}

impl<'a> StoredAccount<'a> {
    /// Reads a text.
    #[must_use]
    pub fn read(text: &'a str) -> Self {
        let (time, sealed) = text.split_once(' ').map_or((text, None), |(time, sealed)| (time, Some(sealed)));
        match time.parse() {
            Ok(at) => Self { replaced_at: Some(UnixMillis(at)), sealed },
            Err(_) => Self { replaced_at: None, sealed: Some(text) },
        }
    }

    /// Its text.
    #[must_use]
    pub fn text(self) -> String {
        match (self.replaced_at, self.sealed) {
            (None, sealed) => sealed.unwrap_or_default().to_owned(),
            (Some(at), None) => at.0.to_string(),
            (Some(at), Some(sealed)) => format!("{} {sealed}", at.0),
        }
    }

    /// It after the authority refused it.
    #[must_use]
    pub fn lost(self) -> Self {
        Self { replaced_at: self.replaced_at.or(Some(UnixMillis(0))), sealed: None }
    }

    /// Milliseconds until another account may take its place; `None`: it may now. A time in the future is of a clock that was wrong.
    #[must_use]
    pub fn wait_ms(self, now: UnixMillis) -> Option<i64> {
        let since = now.0.saturating_sub(self.replaced_at?.0);
        (0..PAUSE_MS).contains(&since).then(|| PAUSE_MS - since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_replaced_once_a_day() {
        let now = UnixMillis(1_790_000_000_000);
        let first = StoredAccount::read("c2VhbGVk+/==");
        assert_eq!(first, StoredAccount { replaced_at: None, sealed: Some("c2VhbGVk+/==") });
        assert_eq!(first.text(), "c2VhbGVk+/==");
        let lost = first.lost();
        assert_eq!(
            (lost.text().as_str(), lost.wait_ms(now)),
            ("0", None),
            "the first one is replaced at once"
        );
        let second = StoredAccount { replaced_at: Some(now), sealed: Some("b3RoZXI=") };
        assert_eq!(second.text(), "1790000000000 b3RoZXI=");
        assert_eq!(StoredAccount::read(&second.text()), second);
        let text = second.lost().text();
        let lost = StoredAccount::read(&text);
        assert_eq!((text.as_str(), lost.sealed), ("1790000000000", None));
        for (later_ms, expected) in
            [(0, Some(PAUSE_MS)), (PAUSE_MS - 1, Some(1)), (PAUSE_MS, None), (-1, None)]
        {
            assert_eq!(lost.wait_ms(UnixMillis(now.0 + later_ms)), expected, "{later_ms}");
        }
    }
}
