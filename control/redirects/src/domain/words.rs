//! Search terms of links. Tokenised in Rust, not by the database, so that Postgres and SQLite return the same links.
//!
//! A text is decomposed (NFKD), without accents and in lower case, and split where neither a letter nor a digit stands. A link
//! has the words of its short id, title, tags, target and Thng's name, and the ids of its resource, Thng and product. A query
//! finds the links of which, for each word of it, some word begins so.
//!
//! Besides words, a link has one token for each tag, custom field, project and product, so that `filter=tags=a` is found by
//! the same index. The token is a 40-bit hash, so the SQL filter is applied as well. Every token begins with a prefix of its
//! account: a word that is frequent in another account costs nothing here, and both databases estimate by account how many
//! there are.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use shared::id::AccountId;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use super::{facets, redirection::Redirection};

/// Longest word, in characters: of a longer one this many count.
const MAX_WORD: usize = 48;

/// Longest query, in characters.
pub const MAX_QUERY: usize = 200;

/// Most words of a query.
pub const MAX_QUERY_WORDS: usize = 16;

/// Characters of the prefix of an account.
const MARK: usize = 4;

/// What stands before the hash of a facet. No letter, so that no query finds it; not ASCII, so that SQLite takes it for
/// a part of the token.
const FACET: char = '§';

/// What is found by a token of its own beside words.
pub const FACETS: &[&str] = &["tags", "customFields"];

/// The tokens of a link, separated by blanks.
#[must_use]
pub fn of(link: &Redirection, facets: &[String]) -> String {
    let mut tokens = words_of(link);
    let product = link.redirect.product_id.iter().map(|id| facet_word("product", id.as_str()));
    let projects = link.scopes.projects.iter().map(|id| facet_word("scopes.projects", id));
    tokens.extend(product.chain(projects));
    tokens.extend(facets.iter().map(|facet| hashed(facet)));
    let mark = mark(link.account);
    tokens.iter().map(|token| format!("{mark}{token}")).collect::<Vec<_>>().join(" ")
}

fn words_of(link: &Redirection) -> BTreeSet<String> {
    let (redirect, described) = (&link.redirect, &link.details.described);
    let target = percent_decode_str(&redirect.target).decode_utf8_lossy();
    // The scheme is in all of them.
    let target = target.split_once("://").map_or(&*target, |(_, rest)| rest);
    let texts = [redirect.short_id.as_str(), target, redirect.platform_id.as_str()];
    let texts = texts.into_iter().chain(described.title.as_deref()).chain(redirect.thng_name.as_deref());
    let texts = texts.chain(described.tags.iter().flatten().map(String::as_str));
    let ids = redirect.thng_id.iter().map(|id| id.as_str());
    let ids = ids.chain(redirect.product_id.iter().map(|id| id.as_str()));
    texts.chain(ids).flat_map(split).collect()
}

/// A query: the words that a link must have, and facets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordQuery {
    /// Beginnings of words.
    beginnings: BTreeSet<String>,
    /// Whole tokens.
    tokens: BTreeSet<String>,
}

impl WordQuery {
    /// Parses `q`.
    ///
    /// # Errors
    /// It is too long, or there is no word in it; a sentence for the client.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > MAX_QUERY {
            return Err(format!("q must have at most {MAX_QUERY} characters."));
        }
        let beginnings: BTreeSet<String> = split(text).collect();
        match beginnings.len() {
            0 => Err("q must hold a letter or a digit.".to_owned()),
            1..=MAX_QUERY_WORDS => Ok(Self { beginnings, tokens: BTreeSet::new() }),
            count => Err(format!("q must have at most {MAX_QUERY_WORDS} words, not {count}.")),
        }
    }

    /// Asks for a facet besides.
    pub fn require(&mut self, field: &str, value: &str) {
        self.tokens.insert(facet_word(field, value));
    }

    /// Whether it asks for nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.beginnings.is_empty() && self.tokens.is_empty()
    }

    /// Whether some word of a link begins with each word of the query.
    ///
    /// Tokens are not compared: the SQL filter has selected by them. It costs some 5 µs a link, so a few milliseconds for the
    /// 1,000 that a list reads, and up to 0.3 ms for a link with the longest texts.
    #[must_use]
    pub fn admits(&self, link: &Redirection) -> bool {
        if self.beginnings.is_empty() {
            return true;
        }
        let words = words_of(link);
        self.beginnings.iter().all(|begin| words.iter().any(|word| word.starts_with(begin.as_str())))
    }

    /// As Postgres reads it, a `tsquery`. Tokens hold no character that means something in it.
    #[must_use]
    pub fn for_postgres(&self, account: AccountId) -> String {
        let mark = mark(account);
        let beginnings = self.beginnings.iter().map(|word| format!("'{mark}{word}':*"));
        let tokens = self.tokens.iter().map(|token| format!("'{mark}{token}'"));
        tokens.chain(beginnings).collect::<Vec<_>>().join(" & ")
    }

    /// As SQLite reads it, a query of FTS5.
    #[must_use]
    pub fn for_sqlite(&self, account: AccountId) -> String {
        let mark = mark(account);
        let beginnings = self.beginnings.iter().map(|word| format!("\"{mark}{word}\"*"));
        let tokens = self.tokens.iter().map(|token| format!("\"{mark}{token}\""));
        tokens.chain(beginnings).collect::<Vec<_>>().join(" AND ")
    }
}

/// The words of a text.
fn split(text: &str) -> impl Iterator<Item = String> {
    let plain: String = text
        .nfkd()
        .filter(|letter| !is_combining_mark(*letter))
        .flat_map(char::to_lowercase)
        .map(|letter| if letter.is_alphanumeric() { letter } else { ' ' })
        .collect();
    let words: Vec<String> = plain
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().take(MAX_WORD).collect())
        .collect();
    words.into_iter()
}

/// A 4-character prefix derived from the account. It may collide; the query also compares `account_id`.
fn mark(account: AccountId) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let hash = Sha256::digest(account.as_str().as_bytes());
    hash.iter().take(MARK).map(|byte| char::from(DIGITS[usize::from(*byte) % DIGITS.len()])).collect()
}

fn facet_word(field: &str, value: &str) -> String {
    hashed(&facets::facet(field, value))
}

fn hashed(facet: &str) -> String {
    let hash = Sha256::digest(facet.as_bytes());
    hash.iter().take(5).fold(FACET.to_string(), |word, byte| format!("{word}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        split(text).collect()
    }

    #[test]
    fn texts_are_split_into_plain_words() {
        for (text, expected) in [
            ("Summer Sale", "summer sale"),
            ("shop.example.com/a-b?x=1#Top", "shop example com a b x 1 top"),
            ("Crème brûlée, ZÜRICH", "creme brulee zurich"),
            ("İstanbul Ελλάδα №7 ½", "istanbul ελλαδα no7 1 2"),
            ("ＦＵＬＬ ﬁne", "full fine"),
            ("日本語 टैग", "日本語 टग"),
            ("' & | ! \" * ( ) : \\ § \u{0}", ""),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
        assert_eq!(words(&"x".repeat(100)), ["x".repeat(48)]);
    }

    #[test]
    fn queries_say_the_same_to_both_databases() {
        let account: AccountId = "UKXAGyEf8SQ5eTDmVgGpHqAa".parse().unwrap();
        let mark = mark(account);
        let mut query = WordQuery::parse("Sale été sale").unwrap();
        query.require("tags", "a");
        let tag = hashed("tags=a");
        assert_eq!(query.for_postgres(account), format!("'{mark}{tag}' & '{mark}ete':* & '{mark}sale':*"));
        assert_eq!(
            query.for_sqlite(account),
            format!("\"{mark}{tag}\" AND \"{mark}ete\"* AND \"{mark}sale\"*")
        );
        let mut only = WordQuery::default();
        assert!(only.is_empty());
        only.require("product", "x");
        assert!(!only.is_empty());
    }

    #[test]
    fn faults_of_queries_are_named() {
        for (text, expected) in [
            ("…!".to_owned(), "q must hold a letter or a digit."),
            ("x".repeat(201), "q must have at most 200 characters."),
            ((0..17).map(|n| format!("w{n} ")).collect(), "q must have at most 16 words, not 17."),
        ] {
            assert_eq!(WordQuery::parse(&text), Err(expected.to_owned()));
        }
    }
}
