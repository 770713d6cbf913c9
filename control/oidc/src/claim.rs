//! A claim that each ID token must have.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

/// Most characters of the setting.
const MAX_CHARS: usize = 1_024;

/// A claim with its value, such as `hd=example.com`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredClaim {
    name: String,
    value: String,
}

impl RequiredClaim {
    /// Reads `name=value`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, value) = text.split_once('=')?;
        let fits = !name.is_empty() && !value.is_empty() && text.chars().count() <= MAX_CHARS;
        let is_plain = !text.contains(char::is_control) && name.trim() == name && value.trim() == value;
        (fits && is_plain).then(|| Self { name: name.to_owned(), value: value.to_owned() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether an ID token whose signature was checked has it: as a text, a number or a boolean that is written so, or as one of
    /// a list.
    pub(crate) fn is_in(&self, token: &str) -> bool {
        let payload = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let claims = payload.and_then(|bytes| serde_json::from_slice::<Map<String, Value>>(&bytes).ok());
        match claims.as_ref().and_then(|claims| claims.get(&self.name)) {
            Some(Value::Array(values)) => values.iter().any(|value| self.is_value(value)),
            Some(value) => self.is_value(value),
            None => false,
        }
    }

    fn is_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => *text == self.value,
            Value::Number(_) | Value::Bool(_) => {
                let text = value.to_string();
                text == self.value
            }
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_setting_has_name_and_value() {
        for (text, expected) in [
            ("hd=example.com", Some(("hd", "example.com"))),
            ("https://example.com/team=a=b", Some(("https://example.com/team", "a=b"))),
            ("hd", None),
            ("hd=", None),
            ("=x", None),
            ("hd =x", None),
            ("hd= x", None),
            ("hd=a\nb", None),
            ("", None),
            (&format!("a={}", "x".repeat(1_023)), None),
        ] {
            let read = RequiredClaim::parse(text);
            let found = read.as_ref().map(|claim| (claim.name.as_str(), claim.value.as_str()));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn a_token_has_the_claim_with_the_value() {
        let is_in = |setting: &str, claims: Value| {
            let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
            RequiredClaim::parse(setting).unwrap().is_in(&format!("e30.{payload}.AA"))
        };
        for (setting, claims, expected) in [
            ("hd=example.com", json!({"hd": "example.com"}), true),
            ("hd=example.com", json!({"hd": "Example.com"}), false),
            ("hd=example.com", json!({"hd": "example.com.evil"}), false),
            ("hd=example.com", json!({"HD": "example.com"}), false),
            ("hd=example.com", json!({}), false),
            ("hd=null", json!({"hd": null}), false),
            ("groups=ops", json!({"groups": ["dev", "ops"]}), true),
            ("groups=ops", json!({"groups": ["dev", ["ops"]]}), false),
            ("groups=ops", json!({"groups": {"ops": true}}), false),
            ("xms_edov=1", json!({"xms_edov": 1}), true),
            ("xms_edov=1", json!({"xms_edov": "1"}), true),
            ("xms_edov=1", json!({"xms_edov": true}), false),
            ("xms_edov=true", json!({"xms_edov": true}), true),
        ] {
            assert_eq!(is_in(setting, claims.clone()), expected, "{setting} {claims}");
        }
        let required = RequiredClaim::parse("hd=x").unwrap();
        for token in ["", "a", "a.b", "..", "e30.e30.AA"] {
            assert!(!required.is_in(token), "{token}");
        }
    }
}
