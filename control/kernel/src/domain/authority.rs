//! What verdicts go by: only operators and trusted applications write it.

use super::common::Common;

/// Custom fields of Things and products that verdicts go by; operators and trusted applications write them.
pub const AUTHORITY_FIELDS: [&str; 4] =
    ["permittedCountries", "expectedWatermark", "expectedMarkings", "factory"];

/// Labels that verdicts go by.
pub const AUTHORITY_TAGS: [&str; 5] = ["recalled", "stolen", "destroyed", "demo", "display"];

/// Keeps what verdicts go by as it is stored; gives a fault for each of it that the change would change.
///
/// What the change leaves out of `customFields` or `tags` stays where it belongs to the authority.
pub fn keep_authority(stored: Option<&Common>, change: &mut Common) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(fields) = &mut change.custom_fields {
        let known = stored.and_then(|stored| stored.custom_fields.as_ref());
        for name in AUTHORITY_FIELDS {
            match (fields.get(name), known.and_then(|known| known.get(name))) {
                (None, Some(value)) => drop(fields.insert(name.to_owned(), value.clone())),
                (new, old) if new != old => faults.push(refusal(&format!("customFields.{name}"))),
                _ => {}
            }
        }
    }
    if let Some(tags) = &mut change.tags {
        let known = stored.and_then(|stored| stored.tags.as_deref()).unwrap_or_default();
        for name in AUTHORITY_TAGS {
            let holds = |tags: &[String]| tags.iter().any(|tag| tag == name);
            match (holds(tags), holds(known)) {
                (false, true) => tags.push(name.to_owned()),
                (true, false) => faults.push(refusal(&format!("tags: the tag {name}"))),
                (true, true) | (false, false) => {}
            }
        }
    }
    faults
}

/// Whether a change gives a resource other identifiers than it has.
#[must_use]
pub fn changes_identifiers(stored: Option<&Common>, change: &Common) -> bool {
    let known = stored.and_then(|stored| stored.identifiers.clone()).unwrap_or_default();
    change.identifiers.as_ref().is_some_and(|new| *new != known)
}

/// What is said of a member that the key may not write.
#[must_use]
pub fn refusal(member: &str) -> String {
    format!("{member}: this kind of key may not change it.")
}
