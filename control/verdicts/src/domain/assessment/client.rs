//! What the address and the language of a client are kept as, to tell people apart whose devices look the same.

use std::{fmt, net::IpAddr};

use super::source::network_of;

/// The first 16 bits of the hash of a client's network: a /24 of IPv4 or a /48 of IPv6.
///
/// It serves to tell whether two scans came from the same network; two networks have the same one by chance once in
/// 65,536 pairs. It hides none: the hash has no key, and of the 256 networks of IPv4 that share one the place of the scan
/// mostly leaves one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkHash(pub u16);

impl NetworkHash {
    /// The hash of the network that an address is in.
    #[must_use]
    pub fn of(ip: IpAddr) -> Self {
        let [first, second, ..] = network_of(ip).0.to_be_bytes();
        Self(u16::from_be_bytes([first, second]))
    }
}

/// The primary subtag of a language tag (RFC 5646): two or three letters in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language([u8; 3]);

impl Language {
    /// The language of a tag such as `de-CH`; `None` if its first part is none of two or three letters.
    #[must_use]
    pub fn of_tag(tag: &str) -> Option<Self> {
        Self::new(tag.split(['-', '_']).next()?.as_bytes())
    }

    fn new(letters: &[u8]) -> Option<Self> {
        let is_subtag = matches!(letters.len(), 2 | 3) && letters.iter().all(u8::is_ascii_alphabetic);
        let letter = |at: usize| letters.get(at).map_or(0, u8::to_ascii_lowercase);
        is_subtag.then(|| Self([letter(0), letter(1), letter(2)]))
    }

    /// The stored form; shorter ones end with a zero byte.
    #[must_use]
    pub const fn bytes(self) -> [u8; 3] {
        self.0
    }

    /// Reads the stored form.
    #[must_use]
    pub fn of_bytes(bytes: [u8; 3]) -> Option<Self> {
        let letters = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
        Self::new(letters).filter(|one| one.0 == bytes)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .filter(|letter| **letter != 0)
            .try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_a_24_or_a_48() {
        let of = |text: &str| NetworkHash::of(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("192.0.2.254"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.9"));
        assert_eq!(of("2001:db8:1::1"), of("2001:db8:1:ffff::2"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
    }

    #[test]
    fn a_language_is_the_first_subtag() {
        for (tag, expected) in [
            ("de", Some("de")),
            ("de-CH", Some("de")),
            ("DE_at", Some("de")),
            ("zh-Hant-TW", Some("zh")),
            ("gsw-CH", Some("gsw")),
            ("", None),
            ("*", None),
            ("d", None),
            ("i-klingon", None),
            ("germ", None),
            ("d1", None),
            ("dé", None),
        ] {
            assert_eq!(Language::of_tag(tag).map(|one| one.to_string()).as_deref(), expected, "{tag}");
        }
    }

    #[test]
    fn stored_languages_round_trip() {
        for tag in ["de", "gsw"] {
            let language = Language::of_tag(tag).unwrap();
            assert_eq!(Language::of_bytes(language.bytes()), Some(language));
        }
        for bytes in [*b"\0\0\0", *b"d\0\0", *b"DE\0", *b"d\0e", *b"d1\0"] {
            assert_eq!(Language::of_bytes(bytes), None, "{bytes:?}");
        }
    }
}
