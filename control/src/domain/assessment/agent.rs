//! Devices by their user agents: an update of the program or the system is not a new device.

use sha2::{Digest, Sha256};

/// The first 64 bits of the hash of a user agent without versions; it stands in JSON as 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentHash(pub u64);

impl AgentHash {
    /// The hash of a user agent; `None` for an empty one.
    #[must_use]
    pub fn of(user_agent: &str) -> Option<Self> {
        let name = without_versions(user_agent);
        let digest = Sha256::digest(name.as_bytes());
        let first = digest.first_chunk::<8>().filter(|_| !name.is_empty())?;
        Some(Self(u64::from_be_bytes(*first)))
    }

    /// As it stands in a result.
    #[must_use]
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The words of a user agent in lower case: what follows `/`, and what is but digits, is cut.
fn without_versions(user_agent: &str) -> String {
    let mut name = String::with_capacity(user_agent.len());
    let ends = |c: char| c.is_ascii_whitespace() || ";()[],".contains(c);
    for word in user_agent.split(ends) {
        let word = word.split(['/', ':']).next().unwrap_or_default();
        // A name has letters; `17_5`, `10.0` and `14` are versions.
        if word.bytes().any(|byte| !byte.is_ascii_digit() && !b"._-+".contains(&byte)) {
            if !name.is_empty() {
                name.push(' ');
            }
            name.extend(word.chars().flat_map(char::to_lowercase));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_no_new_device() {
        let safari = |system: &str, version: &str| {
            format!(
                "Mozilla/5.0 (iPhone; CPU iPhone OS {system} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 Version/{version} Mobile/15E148 Safari/604.1"
            )
        };
        let chrome = |system: &str, model: &str, build: &str, version: &str| {
            format!(
                "Mozilla/5.0 (Linux; Android {system}; {model} Build/{build}) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/{version} Mobile Safari/537.36"
            )
        };
        let firefox = |version: &str| {
            format!(
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:{version}) Gecko/20100101 Firefox/{version}"
            )
        };
        let same = [
            (safari("17_5", "17.5"), safari("18_0_1", "18.0")),
            (
                chrome("14", "SM-S918B", "UP1A.231005.007", "126.0.0.0"),
                chrome("15", "SM-S918B", "AP3A.240905.015", "131.0.6778.39"),
            ),
            (firefox("128.0"), firefox("132.0.1")),
            ("Program/1.0".to_owned(), "program/2".to_owned()),
        ];
        for (old, new) in &same {
            assert_eq!(AgentHash::of(old), AgentHash::of(new), "{old} {new}");
        }
        let different =
            [&same[0].0, &same[1].0, &same[2].0, &same[3].0, &chrome("14", "Pixel 8", "X", "126.0")];
        for (at, one) in different.iter().enumerate() {
            for other in &different[at + 1..] {
                assert_ne!(AgentHash::of(one), AgentHash::of(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn nothing_is_no_device() {
        for text in ["", "  ", "5.0", "/x", "(;)", "17_5 10.0"] {
            assert_eq!(AgentHash::of(text), None, "{text}");
        }
        assert_eq!(AgentHash(0xab).hex(), "00000000000000ab");
    }
}
