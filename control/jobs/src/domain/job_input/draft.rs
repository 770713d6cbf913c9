//! Parses the body of `POST /jobs/actions` into a draft with every fault.

use serde_json::{Map, Value};

use super::{
    super::{
        action_draft::ActionDraft,
        job::ACTION_CREATION,
        limits::{MAX_KEY, check_nested, check_text, shorten},
        members::Members,
    },
    ContentType, Format, Input, JobOption, JobRequest, MAX_ENTRY, MAX_LISTED, OptionType, Source, TARGET,
};

/// Most options of one request.
const MAX_OPTIONS: usize = 10;

/// Longest location, in bytes; as long as any URL.
const MAX_LOCATION: usize = 2_048;

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
