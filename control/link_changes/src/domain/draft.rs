//! The bodies of `POST /jobs/redirections` and of an undo.

use kernel::domain::{limits::integer, members::Members};
use redirects::domain::link_patch::LinkPatch;
use serde_json::{Map, Value};

use super::selection::{self, Selection};

/// A change of many links as a request asks for it.
#[derive(Debug, Clone)]
pub struct ChangeDraft {
    /// Which links.
    pub selection: Selection,
    /// The conditions as they were sent.
    pub sent_selection: Map<String, Value>,
    /// What is changed of them.
    pub patch: LinkPatch,
    /// `patch` as it was sent.
    pub sent_patch: Value,
    /// Whether it only counts and shows.
    pub dry_run: bool,
    /// How many links it is to find.
    pub expect: Option<u64>,
}

impl ChangeDraft {
    /// Reads a body.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let own = selection::MEMBERS.into_iter().chain(["patch", "dryRun", "expect"]);
        refuse_others(&mut members, &own.collect::<Vec<_>>());
        let selection = Selection::read(&mut members);
        let sent_patch = members.raw("patch").cloned();
        let patch = match &sent_patch {
            None => Err(vec!["patch is required.".to_owned()]),
            Some(patch) => LinkPatch::parse(patch),
        };
        let patch = patch.map_err(|faults| faults.into_iter().for_each(|fault| members.fault(fault))).ok();
        let dry_run = members.boolean("dryRun").unwrap_or_default();
        let expect = members.typed("expect", "a whole number, at least 0", |value| {
            integer(value).and_then(|number| u64::try_from(number).ok())
        });
        let draft = patch.zip(sent_patch).map(|(patch, sent_patch)| Self {
            selection,
            sent_selection: Selection::sent(body),
            patch,
            sent_patch,
            dry_run,
            expect,
        });
        members.finish(draft)
    }
}

/// Reads the body of an undo: whether it is refused where any link was changed since.
///
/// # Errors
/// Every fault found, each naming its member.
pub fn parse_undo(body: &Value) -> Result<bool, Vec<String>> {
    let mut members = Members::of(body)?;
    refuse_others(&mut members, &["strict"]);
    let is_strict = members.boolean("strict").unwrap_or_default();
    members.finish(Some(is_strict))
}

fn refuse_others(members: &mut Members<'_>, known: &[&str]) {
    let others: Vec<&str> = members.names().filter(|name| !known.contains(name)).collect();
    for other in others {
        members.fault(format!("{other} is not a member of this body."));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_of_all_parts_are_named_at_once() {
        let body = json!({"filter": 1, "q": "?", "patch": {"title": 1, "shortId": "A"}, "dryRun": "yes", "expect": -1,
            "limit": 5});
        let faults = ChangeDraft::parse(&body).unwrap_err();
        let parts = [
            "limit is not",
            "filter must",
            "q must",
            "patch.title must",
            "patch.shortId is",
            "dryRun",
            "expect must",
        ];
        assert_eq!(faults.len(), parts.len(), "{faults:?}");
        for part in parts {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
        }
        let faults = ChangeDraft::parse(&json!({})).unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
        let draft =
            ChangeDraft::parse(&json!({"filter": "tags=a", "patch": {"title": "b"}, "expect": 2.0})).unwrap();
        assert!(draft.expect == Some(2) && !draft.dry_run && draft.sent_patch == json!({"title": "b"}));
    }

    #[test]
    fn an_undo_is_strict_or_not() {
        assert_eq!(parse_undo(&json!({})), Ok(false));
        assert_eq!(parse_undo(&json!({"strict": true})), Ok(true));
        let faults = parse_undo(&json!({"strict": 1, "force": true})).unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
