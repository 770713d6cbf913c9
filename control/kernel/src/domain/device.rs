//! Identifies devices by their user agents. An update of the browser or the system is not a new device.
//!
//! Assessments tell devices apart by a hash of the whole user agent without versions, under a key of the account. An
//! account that keeps reduced user agents has that hash beside them, in a member of the context that no answer, event or
//! export shows; from whole user agents it is computed when they are read. So both give the same device.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use shared::id::AccountId;

/// The member of an action's `context` that has the device: 16 hex digits. It is for assessments alone.
pub const MEMBER: &str = "device";

/// Removes the device from a context before it is shown.
pub fn hide(context: &mut Value) {
    if let Value::Object(members) = context {
        members.remove(MEMBER);
    }
}

/// The key of the hashes of devices, which all replicas share.
#[derive(Clone)]
pub struct DeviceKey([u8; 32]);

/// The key of an account.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccountDevices([u8; 32]);

shared::opaque!(DeviceKey);

shared::opaque!(AccountDevices);

impl DeviceKey {
    /// From a secret that all replicas share.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(blake3::derive_key("waymark 2026-11 devices of assessments", secret))
    }

    /// The key of an account: its devices cannot be compared with those of another.
    #[must_use]
    pub fn of(&self, account: AccountId) -> AccountDevices {
        AccountDevices(*blake3::keyed_hash(&self.0, account.as_str().as_bytes()).as_bytes())
    }
}

impl AccountDevices {
    /// The device that sends a user agent; `None` for an empty one.
    #[must_use]
    pub fn device(&self, user_agent: &str) -> Option<AgentHash> {
        AgentHash::of(user_agent).map(|hash| self.keyed(hash))
    }

    /// The device of a hash that was made without a key.
    #[must_use]
    pub fn keyed(&self, hash: AgentHash) -> AgentHash {
        let keyed = blake3::keyed_hash(&self.0, &hash.0.to_be_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *keyed.as_bytes();
        AgentHash(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    /// The device of a stored context: what was kept of it, else the one of its user agent; without both that of the names
    /// of browser and system.
    #[must_use]
    pub fn of_context(&self, context: &Map<String, Value>) -> Option<AgentHash> {
        let text = |name: &str| context.get(name).and_then(Value::as_str);
        if let Some(device) = text(MEMBER).and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            return Some(AgentHash(device));
        }
        if let Some(agent) = text("userAgent") {
            return self.device(agent);
        }
        let names = [text("userAgentName"), text("operatingSystemName")];
        self.device(&names.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_device_is_the_same_however_much_of_it_is_kept() {
        let account = AccountId::new(1, [1; 16]);
        let devices = DeviceKey::new(&[7; 32]).of(account);
        let phone = |model: &str, version: &str| {
            format!(
                "Mozilla/5.0 (Linux; Android 14; {model}) AppleWebKit/537.36 (KHTML, like Gecko) \
                Chrome/{version}.0.0.0 Mobile Safari/537.36"
            )
        };
        let of = |context: Value| devices.of_context(context.as_object().unwrap());
        let whole = of(json!({"userAgent": phone("Pixel 8", "126")}));
        assert!(whole.is_some());
        let kept = whole.map(AgentHash::hex);
        let names = json!({"userAgent": "Chrome/126 (Android/14)", "userAgentName": "Chrome", "operatingSystemName": "Android"});
        let mut reduced = names.clone();
        reduced[MEMBER] = json!(kept);
        assert_eq!(of(reduced.clone()), whole, "as it was kept");
        assert_eq!(of(json!({"userAgent": phone("Pixel 8", "131")})), whole, "an update");
        let others = [
            of(json!({"userAgent": phone("Pixel 6", "126")})),
            of(names.clone()),
            DeviceKey::new(&[8; 32])
                .of(account)
                .of_context(json!({"userAgent": phone("Pixel 8", "126")}).as_object().unwrap()),
            DeviceKey::new(&[7; 32]).of(AccountId::new(1, [2; 16])).device(&phone("Pixel 8", "126")),
            AgentHash::of(&phone("Pixel 8", "126")),
        ];
        assert!(others.iter().all(|other| other.is_some() && *other != whole), "{others:?}");
        let none = json!({"userAgentName": "Chrome", "operatingSystemName": "Android"});
        assert_eq!(of(none), of(names), "without the member a reduced user agent is its names");
        assert_eq!(of(json!({"city": "Bern"})), None);
        hide(&mut reduced);
        assert!(reduced.get(MEMBER).is_none() && reduced.get("userAgent").is_some());
    }

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
