//! The TOML file of settings, below flags and variables.

use std::collections::BTreeMap;

use figment::{
    Figment,
    providers::{Format, Toml},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, DeserializeOwned},
};
use serde_json::Value;

use super::ConfigError;

/// The settings of a binary: what flags and variables say, else what the TOML file at `path` says. An empty text counts
/// as unset, as compose files write it.
///
/// # Errors
/// The file cannot be read, is not TOML, or has a key that is unknown.
pub fn with_file<T: Serialize + DeserializeOwned>(here: &T, path: Option<&str>) -> Result<T, ConfigError> {
    let wrong = |reason: String| ConfigError::new("WAYMARK_CONFIG", reason);
    let here = serde_json::to_value(here).map_err(|error| wrong(error.to_string()))?;
    let Value::Object(here) = here else { return Err(wrong("settings have names".to_owned())) };
    let said = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(Value::from);
    let mut texts = serde_json::Map::new();
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        let text =
            std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot read {path}: {error}")))?;
        let file: BTreeMap<String, Text> = Figment::from(Toml::string(&text)).extract().map_err(|error| {
            // One line: the parser draws the place over several.
            let words: Vec<String> = error.to_string().lines().map(|line| line.trim().to_owned()).collect();
            wrong(format!("{path}: {}", words.join(" ")))
        })?;
        if let Some(key) = file.keys().find(|key| !here.contains_key(*key)) {
            return Err(wrong(format!("{path}: {key} is not a setting of this program")));
        }
        texts.extend(file.into_iter().filter_map(|(key, Text(text))| Some((key, said(&text)?))));
    }
    texts.extend(here.into_iter().filter_map(|(key, value)| Some((key, said(value.as_str()?)?))));
    serde_json::from_value(Value::Object(texts)).map_err(|error| wrong(error.to_string()))
}

/// A value of the file: a text, a number, a truth value or a list (joined by commas).
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Bool(bool),
            Number(i64),
            Text(String),
            List(Vec<String>),
        }
        match Written::deserialize(deserializer) {
            Ok(Written::Bool(value)) => Ok(Self(value.to_string())),
            Ok(Written::Number(value)) => Ok(Self(value.to_string())),
            Ok(Written::Text(value)) => Ok(Self(value)),
            Ok(Written::List(values)) => Ok(Self(values.join(","))),
            Err(_) => {
                Err(de::Error::custom("a text, a number, true or false, or a list of texts is expected"))
            }
        }
    }
}
