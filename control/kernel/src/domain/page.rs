//! Pages of a list: the request, the position of the next page, and the token that holds it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use shared::time::UnixMillis;
use subtle::ConstantTimeEq;

/// Rows per page if the request does not say.
pub const DEFAULT_PER_PAGE: u32 = 30;
/// Most rows per page.
pub const MAX_PER_PAGE: u32 = 100;

/// Order of a list by creation; insertion order breaks ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortOrder {
    /// Oldest first.
    Ascending,
    /// Newest first.
    #[default]
    Descending,
}

/// Place of a row in a list: key-set, so rows that come and go elsewhere do not move it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// When the row was created (or, in histories, its timestamp).
    pub at: UnixMillis,
    /// Its order of insertion.
    pub seq: i64,
}

/// Which part of a list is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// 1 to [`MAX_PER_PAGE`].
    pub per_page: u32,
    /// Order of the list.
    pub sort: SortOrder,
    /// The last row of the page before.
    pub after: Option<Position>,
    /// Number of the page from 1, for lists with page numbers; `after` is more exact where it is known.
    pub number: u32,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self { per_page: DEFAULT_PER_PAGE, sort: SortOrder::Descending, after: None, number: 1 }
    }
}

impl PageRequest {
    /// Rows to fetch: one more than the page, to know whether another page follows.
    #[must_use]
    pub const fn limit(self) -> u32 {
        self.per_page + 1
    }

    /// Rows to pass over, when the page is asked for by its number.
    #[must_use]
    pub fn skipped(self) -> u64 {
        let before = if self.after.is_none() { self.number.saturating_sub(1) } else { 0 };
        u64::from(before) * u64::from(self.per_page)
    }

    /// Whether the list is oldest first.
    #[must_use]
    pub const fn is_ascending(self) -> bool {
        matches!(self.sort, SortOrder::Ascending)
    }

    /// What rows are compared with: the position before, or the end of the number line.
    #[must_use]
    pub fn start(self) -> (i64, i64) {
        match (self.after, self.sort) {
            (Some(position), _) => (position.at.0, position.seq),
            (None, SortOrder::Ascending) => (i64::MIN, i64::MIN),
            (None, SortOrder::Descending) => (i64::MAX, i64::MAX),
        }
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page begins, when there is one.
    pub next: Option<Position>,
    /// How many rows the whole list has, when that was asked for.
    pub total: Option<u64>,
}

impl<T> Page<T> {
    /// Cuts rows fetched with [`PageRequest::limit`] to the page.
    #[must_use]
    pub fn cut(mut rows: Vec<T>, request: PageRequest, position: impl Fn(&T) -> Position) -> Self {
        let per_page = request.per_page as usize;
        if rows.len() <= per_page {
            return Self { items: rows, next: None, total: None };
        }
        rows.truncate(per_page);
        let next = rows.last().map(position);
        Self { items: rows, next, total: None }
    }

    /// The same page of what each row becomes.
    ///
    /// # Errors
    /// The first that `map` gives.
    pub fn try_map<U, E>(self, map: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        let items = self.items.into_iter().map(map).collect::<Result<_, E>>()?;
        Ok(Page { items, next: self.next, total: self.total })
    }

    /// The part of a short list that is in memory, oldest first, whose places are `0, 1, 2…`.
    #[must_use]
    pub fn of_list(list: Vec<T>, request: PageRequest) -> Self {
        let placed = (0i64..).zip(list).map(|(seq, item)| (Position { at: UnixMillis(0), seq }, item));
        Self::of_placed(placed.collect(), request)
    }

    /// The part of a short list that is in memory, in the order of its places, oldest first.
    #[must_use]
    pub fn of_placed(mut rows: Vec<(Position, T)>, request: PageRequest) -> Self {
        let total = Some(rows.len() as u64);
        if !request.is_ascending() {
            rows.reverse();
        }
        let start = request.start();
        rows.retain(|(position, _)| {
            let here = (position.at.0, position.seq);
            if request.is_ascending() { here > start } else { here < start }
        });
        let skipped = usize::try_from(request.skipped()).unwrap_or(usize::MAX);
        let rows = rows.into_iter().skip(skipped).take(request.limit() as usize).collect();
        let page = Page::cut(rows, request, |(position, _)| *position);
        Self { items: page.items.into_iter().map(|(_, item)| item).collect(), next: page.next, total }
    }
}

/// What a page token is bound to; it is invalid elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// The account.
    pub account: &'a str,
    /// The path without the version prefix.
    pub path: &'a str,
    /// The query without the token and without the key, in any order.
    pub query: &'a [(String, String)],
}

const PAYLOAD_LEN: usize = 16;
const MAC_LEN: usize = 16;

/// Creates the token of a position: 43 characters that are safe in a URL.
#[must_use]
pub fn write_token(key: &[u8; 32], binding: Binding<'_>, position: Position) -> String {
    let mut bytes = Vec::with_capacity(PAYLOAD_LEN + MAC_LEN);
    bytes.extend_from_slice(&position.at.0.to_be_bytes());
    bytes.extend_from_slice(&position.seq.to_be_bytes());
    let mac = authenticate(key, binding, &bytes);
    bytes.extend_from_slice(&mac);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Parses a token; `None` when it was not created by this key for this binding.
#[must_use]
pub fn read_token(key: &[u8; 32], binding: Binding<'_>, token: &str) -> Option<Position> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (payload, mac) = bytes.split_at_checked(PAYLOAD_LEN)?;
    if !bool::from(authenticate(key, binding, payload).ct_eq(mac)) {
        return None;
    }
    let (at, seq) = payload.split_at_checked(8)?;
    Some(Position {
        at: UnixMillis(i64::from_be_bytes(at.try_into().ok()?)),
        seq: i64::from_be_bytes(seq.try_into().ok()?),
    })
}

/// Keyed hash over every part with its length, so that no two bindings read the same.
fn authenticate(key: &[u8; 32], binding: Binding<'_>, payload: &[u8]) -> [u8; MAC_LEN] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    part(payload);
    part(binding.account.as_bytes());
    part(binding.path.as_bytes());
    let mut query: Vec<&(String, String)> = binding.query.iter().collect();
    query.sort();
    for (name, value) in query {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    let mut mac = [0; MAC_LEN];
    hasher.finalize_xof().fill(&mut mac);
    mac
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn a_page_token_is_valid_for_its_own_list_only() {
        let query = pairs(&[("perPage", "2"), ("filter", "name=x")]);
        let binding = Binding { account: "A", path: "/thngs", query: &query };
        let position = Position { at: UnixMillis(-5), seq: 9 };
        let token = write_token(&KEY, binding, position);
        assert_eq!(token.len(), 43);
        assert_eq!(read_token(&KEY, binding, &token), Some(position));

        let reordered = pairs(&[("filter", "name=x"), ("perPage", "2")]);
        assert_eq!(read_token(&KEY, Binding { query: &reordered, ..binding }, &token), Some(position));

        let other = pairs(&[("perPage", "3"), ("filter", "name=x")]);
        let moved = pairs(&[("perPage", "2f"), ("ilter", "name=x")]);
        for (what, key, binding) in [
            ("another key", [8; 32], binding),
            ("another account", KEY, Binding { account: "B", ..binding }),
            ("another path", KEY, Binding { path: "/products", ..binding }),
            ("another value", KEY, Binding { query: &other, ..binding }),
            ("another split", KEY, Binding { query: &moved, ..binding }),
            ("less", KEY, Binding { query: &[], ..binding }),
        ] {
            assert_eq!(read_token(&key, binding, &token), None, "{what}");
        }
    }

    proptest! {
        #[test]
        fn other_texts_are_refused_as_page_tokens(text in ".{0,80}") {
            prop_assert_eq!(read_token(&KEY, Binding { account: "A", path: "/", query: &[] }, &text), None);
        }

        #[test]
        fn a_changed_token_is_refused(at: i64, seq: i64, index in 0usize..43, to in "[A-Za-z0-9_-]") {
            let binding = Binding { account: "A", path: "/", query: &[] };
            let token = write_token(&KEY, binding, Position { at: UnixMillis(at), seq });
            let mut changed = token.clone();
            changed.replace_range(index..=index, &to);
            prop_assume!(changed != token);
            prop_assert_eq!(read_token(&KEY, binding, &changed), None);
        }

        #[test]
        fn pages_cover_the_whole_list_once(length in 0i64..40, per_page in 1u32..12, ascending: bool) {
            let sort = if ascending { SortOrder::Ascending } else { SortOrder::Descending };
            let mut request = PageRequest { per_page, sort, ..PageRequest::default() };
            let mut seen = Vec::new();
            for number in 1.. {
                let page = Page::of_list((0..length).collect(), request);
                prop_assert!(page.items.len() <= per_page as usize);
                let numbered = PageRequest { after: None, number, ..request };
                prop_assert_eq!(&Page::of_list((0..length).collect(), numbered), &page);
                seen.extend(page.items);
                let Some(next) = page.next else { break };
                request.after = Some(next);
            }
            let mut expected: Vec<i64> = (0..length).collect();
            if !ascending { expected.reverse(); }
            prop_assert_eq!(seen, expected);
        }
    }
}
