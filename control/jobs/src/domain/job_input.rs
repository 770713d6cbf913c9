//! Parses the body of `POST /jobs/actions`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::{id::ThngId, identifier::Identifier, short_id::ShortId};

use super::{
    action_draft::ActionDraft,
    job::ACTION_CREATION,
    limits::{MAX_IDENTIFIER, MAX_KEY, check_nested, check_text, shorten},
    members::Members,
};

/// Most ids of a list in the request itself; more have to come in a file.
pub const MAX_LISTED: usize = 5_000;

/// Longest entry of an input, in characters: a key, a colon and a value.
pub const MAX_ENTRY: usize = MAX_KEY + 1 + MAX_IDENTIFIER;

/// Most options of one request.
const MAX_OPTIONS: usize = 10;

/// Longest location, in bytes; as long as any URL.
const MAX_LOCATION: usize = 2_048;

const TARGET: &str = "THNGS";

/// The kind of the entries of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ContentType {
    /// Ids of Thngs.
    PlatformIds,
    /// The same by an older name, which is echoed as it was sent.
    EvrythngIds,
    /// Identifiers of Thngs.
    ExternalIds,
    /// Short ids of redirections of Thngs.
    ShortIds,
}

impl ContentType {
    const ALL: [Self; 4] = [Self::PlatformIds, Self::EvrythngIds, Self::ExternalIds, Self::ShortIds];

    /// The type as the platform API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlatformIds => "PLATFORM_IDS",
            Self::EvrythngIds => "EVRYTHNG_IDS",
            Self::ExternalIds => "EXTERNAL_IDS",
            Self::ShortIds => "SHORT_IDS",
        }
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

/// Consequences that the actions of a job exclude.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OptionType {
    /// Push notifications for each action.
    SingleResourceNotification,
    /// Reactions to each action.
    SingleResourceReactions,
}

impl OptionType {
    const ALL: [Self; 2] = [Self::SingleResourceNotification, Self::SingleResourceReactions];

    /// The type as the platform API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SingleResourceNotification => "SINGLE_RESOURCE_NOTIFICATION",
            Self::SingleResourceReactions => "SINGLE_RESOURCE_REACTIONS",
        }
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

/// A parsed body: what could be read, and every fault. Faults that depend on the account are found later.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobDraft {
    /// The whole, when nothing is wrong with its form.
    pub request: Option<JobRequest>,
    /// The template, if that much is right.
    pub draft: Option<ActionDraft>,
    /// The input, if that much is right.
    pub input: Option<Input>,
    /// Every fault found, each naming its member.
    pub faults: Vec<String>,
}

impl JobDraft {
    /// Reads the body of `POST /jobs/actions`.
    ///
    /// # Errors
    /// The body is no object.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let template = read_payload(&mut members);
        match members.text("type") {
            Some(ACTION_CREATION) | None => {}
            Some(other) => {
                members.fault(format!("type must be {ACTION_CREATION}, not {:?}.", shorten(other)))
            }
        }
        match members.text("target") {
            Some(TARGET) => {}
            Some(other) => members.fault(format!("target must be {TARGET}, not {:?}.", shorten(other))),
            None if members.raw("target").is_none() => members.fault("target is required."),
            None => {}
        }
        let input = read_input(&mut members);
        let options = read_options(&mut members);
        let faults = members.finish(Some(())).err().unwrap_or_default();
        let request = match (&template, &input) {
            (Some((payload, _)), Some(input)) if faults.is_empty() => Some(JobRequest {
                payload: payload.clone(),
                input: input.clone(),
                options,
                operator: String::new(),
                default_domain: None,
            }),
            _ => None,
        };
        Ok(Self { request, draft: template.map(|(_, draft)| draft), input, faults })
    }
}

fn read_payload(members: &mut Members<'_>) -> Option<(Map<String, Value>, ActionDraft)> {
    let Some(value) = members.raw("payload") else {
        members.fault("payload is required.");
        return None;
    };
    let read = Members::within(value, "payload").and_then(|mut inner| {
        // Spec gap: `null` for the Thng is as good as none.
        if inner.raw("thng").is_some() {
            inner.fault("payload.thng must be left out: the input names the Thngs.");
        }
        if inner.raw("identifiers").is_some() {
            inner.fault("payload.identifiers must be left out: each action has those of its Thng.");
        }
        if inner.raw("type").is_none_or(|kind| kind == "") {
            inner.fault("payload.type is required.");
        }
        if let Err(fault) = check_nested(value) {
            inner.fault(format!("payload {fault}."));
        }
        ActionDraft::read(inner)
    });
    match (read, value.as_object()) {
        (Ok(draft), Some(payload)) => Some((payload.clone(), draft)),
        (Ok(_), None) => None,
        (Err(faults), _) => {
            faults.into_iter().for_each(|fault| members.fault(fault));
            None
        }
    }
}

/// A member of the input that is one of some words.
fn word<T: Copy>(members: &mut Members<'_>, member: &str, words: &[(&'static str, T)]) -> Option<T> {
    let path = members.path(member);
    if members.raw(member).is_none() {
        members.fault(format!("{path} is required."));
        return None;
    }
    let text = members.text(member)?;
    let found = words.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        members.fault(format!("{path} must be {}, not {:?}.", names.join(" or "), shorten(text)));
    }
    found.map(|(_, value)| *value)
}

fn read_input(members: &mut Members<'_>) -> Option<Input> {
    let Some(value) = members.raw("input") else {
        members.fault("input is required.");
        return None;
    };
    match Members::within(value, "input").and_then(input) {
        Ok(input) => Some(input),
        Err(faults) => {
            faults.into_iter().for_each(|fault| members.fault(fault));
            None
        }
    }
}

fn input(mut members: Members<'_>) -> Result<Input, Vec<String>> {
    let members_ = &mut members;
    let is_file = word(members_, "type", &[("LIST", false), ("FILE", true)]);
    let content_type = word(members_, "contentType", &ContentType::ALL.map(|kind| (kind.as_str(), kind)));
    let key = member_of(members_, "key", content_type, ContentType::ExternalIds, MAX_KEY);
    // The longest host name.
    let short_domain = member_of(members_, "shortDomain", content_type, ContentType::ShortIds, 253);
    let source = match is_file {
        Some(false) => read_list(members_),
        Some(true) => read_file(members_),
        None => None,
    };
    let input = content_type.zip(source).map(|(content_type, source)| Input {
        content_type,
        key,
        short_domain: short_domain.map(|domain| domain.to_ascii_lowercase()),
        source,
    });
    members.finish(input)
}

/// A text that only one type of content may have.
fn member_of(
    members: &mut Members<'_>,
    member: &str,
    content_type: Option<ContentType>,
    owner: ContentType,
    max: usize,
) -> Option<String> {
    let path = members.path(member);
    members.raw(member)?;
    if content_type.is_some_and(|kind| kind != owner) {
        members.fault(format!("{path} is for the contentType {} only.", owner.as_str()));
    }
    let text = members.text(member)?;
    if let Err(fault) = check_text(text, 1, max) {
        members.fault(format!("{path} {fault}."));
    }
    Some(text.to_owned())
}

fn read_list(members: &mut Members<'_>) -> Option<Source> {
    let path = members.path("payload");
    if members.raw("payload").is_none() {
        members.fault(format!("{path} is required."));
        return None;
    }
    let listed = members.texts("payload")?;
    if listed.len() > MAX_LISTED {
        let count = listed.len();
        members.fault(format!(
            "{path} must hold at most {MAX_LISTED} ids, not {count}; for more use the type FILE."
        ));
        return None;
    }
    if listed.is_empty() {
        members.fault(format!("{path} must hold at least one id."));
    }
    for (index, entry) in listed.iter().enumerate() {
        if let Err(fault) = check_text(entry, 1, MAX_ENTRY) {
            members.fault(format!("{path}[{index}] {fault}."));
        }
    }
    Some(Source::List { payload: listed.into_iter().map(str::to_owned).collect() })
}

fn read_file(members: &mut Members<'_>) -> Option<Source> {
    let format = word(members, "format", &[("CSV", Format::Csv), ("ZIP", Format::Zip)]);
    let path = members.path("location");
    if members.raw("location").is_none() {
        members.fault(format!("{path} is required."));
    }
    let location = members.text("location")?;
    if location.len() > MAX_LOCATION || location.contains('\0') {
        members.fault(format!("{path} must have at most {MAX_LOCATION} bytes, none of them U+0000."));
        return None;
    }
    Some(Source::File { location: location.to_owned(), format: format? })
}

fn read_options(members: &mut Members<'_>) -> Option<Vec<JobOption>> {
    let given = members.typed("options", "an array of objects", Value::as_array)?;
    if given.len() > MAX_OPTIONS {
        members.fault(format!("options must have at most {MAX_OPTIONS} items, not {}.", given.len()));
        return None;
    }
    let mut found: Vec<JobOption> = Vec::new();
    for (index, value) in given.iter().enumerate() {
        let name = format!("options[{index}]");
        let read = Members::within(value, &name).and_then(|mut inner| {
            let kind = word(&mut inner, "type", &OptionType::ALL.map(|kind| (kind.as_str(), kind)));
            if inner.raw("enabled").is_none() {
                inner.fault(format!("{name}.enabled is required."));
            }
            let enabled = inner.boolean("enabled");
            inner.finish(kind.zip(enabled).map(|(kind, enabled)| JobOption { kind, enabled }))
        });
        match read {
            Ok(option) if found.iter().any(|known| known.kind == option.kind) => {
                members.fault(format!("{name}.type is named twice."));
            }
            Ok(option) => found.push(option),
            Err(faults) => faults.into_iter().for_each(|fault| members.fault(fault)),
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests;
