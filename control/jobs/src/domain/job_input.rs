//! Parses the body of `POST /jobs/actions`.

mod draft;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::{id::ThngId, identifier::Identifier, short_id::ShortId};

pub use self::draft::JobDraft;
use super::{
    action_draft::ActionDraft,
    limits::{MAX_IDENTIFIER, MAX_KEY, check_text},
    members::Members,
};

/// Most ids of a list in the request itself; more have to come in a file.
pub const MAX_LISTED: usize = 5_000;

/// Longest entry of an input, in characters: a key, a colon and a value.
pub const MAX_ENTRY: usize = MAX_KEY + 1 + MAX_IDENTIFIER;

const TARGET: &str = "THNGS";

shared::words! {
    /// The kind of the entries of an input.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum ContentType {
        /// Ids of Thngs.
        PlatformIds = "PLATFORM_IDS",
        /// The same by an older name, which is echoed as it was sent.
        EvrythngIds = "EVRYTHNG_IDS",
        /// Identifiers of Thngs.
        ExternalIds = "EXTERNAL_IDS",
        /// Short ids of redirections of Thngs.
        ShortIds = "SHORT_IDS",
    }
}

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Format {
    /// One id a line.
    Csv,
    /// An archive of such files.
    Zip,
}

/// Where the entries come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Source {
    /// The request itself.
    List {
        /// The entries.
        payload: Vec<String>,
    },
    /// A file of the account.
    File {
        /// Its `contentUrl`, as it was sent.
        location: String,
        /// Its form.
        format: Format,
    },
}

/// The input of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The kind of the entries.
    pub content_type: ContentType,
    /// The key of external identifiers; without one each entry is `<key>:<value>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The domain of short ids; without one the account's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_domain: Option<String>,
    /// Where the entries come from.
    #[serde(flatten)]
    pub source: Source,
}

/// What an entry names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Name {
    /// A Thng by its id.
    Thng(ThngId),
    /// A Thng by an identifier.
    Identifier(Identifier),
    /// A Thng by the short id of its redirection.
    Short(ShortId),
}

impl Input {
    /// How many entries the request itself lists.
    #[must_use]
    pub fn listed(&self) -> Option<u64> {
        match &self.source {
            Source::List { payload } => Some(payload.len() as u64),
            Source::File { .. } => None,
        }
    }

    /// The reference of an entry.
    ///
    /// # Errors
    /// It is not a valid reference of this kind; a sentence that says why.
    pub fn name(&self, entry: &str) -> Result<Name, String> {
        check_text(entry, 1, MAX_ENTRY).map_err(|fault| format!("The id {fault}."))?;
        match self.content_type {
            ContentType::PlatformIds | ContentType::EvrythngIds => {
                entry.parse().map(Name::Thng).map_err(|error| sentence(&error))
            }
            ContentType::ExternalIds => match &self.key {
                Some(key) => Ok(Name::Identifier(Identifier { key: key.clone(), value: entry.to_owned() })),
                None => entry.parse().map(Name::Identifier).map_err(|error| sentence(&error)),
            },
            ContentType::ShortIds => entry.parse().map(Name::Short).map_err(|error| sentence(&error)),
        }
    }

    /// How the log of the job names an entry.
    ///
    /// `domain` is the short domain where the input names none.
    #[must_use]
    pub fn payload(&self, entry: &str, domain: Option<&str>) -> Value {
        // The log is stored, and U+0000 cannot be.
        let entry = entry[..entry.floor_char_boundary(MAX_ENTRY)].replace('\0', "\u{fffd}");
        let kind = self.content_type.as_str();
        match self.content_type {
            ContentType::PlatformIds | ContentType::EvrythngIds => json!({"type": kind, "id": entry}),
            ContentType::ExternalIds => match (&self.key, entry.parse::<Identifier>()) {
                (Some(key), _) => json!({"type": kind, "key": key, "value": entry}),
                (None, Ok(found)) => json!({"type": kind, "key": found.key, "value": found.value}),
                (None, Err(_)) => json!({"type": kind, "value": entry}),
            },
            ContentType::ShortIds => match self.short_domain.as_deref().or(domain) {
                Some(domain) => json!({"type": kind, "shortDomain": domain, "shortId": entry}),
                None => json!({"type": kind, "shortId": entry}),
            },
        }
    }
}

fn sentence(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

shared::words! {
    /// Consequences that the actions of a job exclude.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum OptionType {
        /// Push notifications for each action.
        SingleResourceNotification = "SINGLE_RESOURCE_NOTIFICATION",
        /// Reactions to each action.
        SingleResourceReactions = "SINGLE_RESOURCE_REACTIONS",
    }
}

/// An option of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOption {
    /// The excluded consequence.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// Whether it is on; `false` means the same as no option.
    pub enabled: bool,
}

/// The request of a job; stored as one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRequest {
    /// The template of its actions, as it was sent.
    pub payload: Map<String, Value>,
    /// Its input.
    pub input: Input,
    /// Its options; `None` when there was no such member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<JobOption>>,
    /// Id of the operator who asked.
    #[serde(default)]
    pub operator: String,
    /// The domain of short ids where the input names none, found when the job was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_domain: Option<String>,
}

impl JobRequest {
    /// Whether an exclusion is on.
    #[must_use]
    pub fn excludes(&self, kind: OptionType) -> bool {
        self.options.iter().flatten().any(|option| option.kind == kind && option.enabled)
    }

    /// The template of its actions.
    ///
    /// # Errors
    /// Every fault found, each naming its member: none, for one that was accepted.
    pub fn draft(&self) -> Result<ActionDraft, Vec<String>> {
        let payload = Value::Object(self.payload.clone());
        Members::within(&payload, "payload").and_then(ActionDraft::read)
    }

    /// The target, of which there is one only.
    #[must_use]
    pub const fn target(&self) -> &'static str {
        TARGET
    }
}

#[cfg(test)]
mod tests;
