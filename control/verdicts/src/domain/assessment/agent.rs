//! Identifies devices by their user agents. An update of the browser or the system is not a new device.

use sha2::{Digest, Sha256};

/// The first 64 bits of the hash of a user agent without versions; 16 hex digits in JSON.
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

    /// As it is written in a result.
    #[must_use]
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// Names before a number that is a version, and not a part of a model's name such as `Pixel 8`.
const HAVE_VERSIONS: &[&str] = &[
    "android",
    "ios",
    "ipados",
    "os",
    "macos",
    "cros",
    "nt",
    "windows",
    "linux",
    "fedora",
    "ubuntu",
    "tizen",
    "kaios",
    "harmonyos",
    "darwin",
    "like",
    "x",
    "msie",
    "trident",
    "rv",
    "version",
    "release",
    "build",
    "chrome",
    "firefox",
    "safari",
    "opera",
];

/// The words of a user agent in lower case: what follows `/` and versions are cut.
///
/// A version is a number with dots, underscores or dashes, or one without that does not follow a name within its part
/// between semicolons and brackets: the 8 of `Pixel 8` is part of the model, the 14 of `Android 14` and of `; 14;` is not.
fn without_versions(user_agent: &str) -> String {
    let mut name = String::with_capacity(user_agent.len());
    for part in user_agent.split([';', '(', ')', '[', ']', ',']) {
        // Whether a number after the previous word belongs to its name.
        let mut is_named = false;
        for word in part.split_ascii_whitespace() {
            let (word, has_version) = match word.find(['/', ':']) {
                Some(at) => (word.get(..at).unwrap_or_default(), true),
                None => (word, false),
            };
            let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            let has_letters = word.bytes().any(|byte| !byte.is_ascii_digit() && !b"._-+".contains(&byte));
            let lower = word.to_lowercase();
            if has_letters || is_number && is_named {
                if !name.is_empty() {
                    name.push(' ');
                }
                name.push_str(&lower);
            }
            is_named = has_letters && !has_version && !HAVE_VERSIONS.contains(&lower.as_str());
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_software_update_is_not_a_new_device() {
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
        let pixel = |model: &str| chrome("14", model, "X", "126.0");
        // Model numbers are no versions.
        let models =
            ["Pixel 8", "Pixel 6", "Pixel 8 Pro", "Redmi Note 12", "Redmi Note 13", "moto g 5"].map(pixel);
        let different: Vec<&String> = same.iter().map(|(old, _)| old).chain(&models).collect();
        for (at, one) in different.iter().enumerate() {
            for other in &different[at + 1..] {
                assert_ne!(AgentHash::of(one), AgentHash::of(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn an_empty_user_agent_is_no_device() {
        for text in ["", "  ", "5.0", "/x", "(;)", "17_5 10.0"] {
            assert_eq!(AgentHash::of(text), None, "{text}");
        }
        assert_eq!(AgentHash(0xab).hex(), "00000000000000ab");
    }
}
