//! What requests say about when a link leads to its target.

use shared::{
    availability::{ACTIVE, Availability, MAX_SCANS, PAUSED},
    target::Target,
    time::UnixMillis,
};

use super::{body, limits, members::Members};

/// The change of a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// Not in the request: keep the stored value.
    #[default]
    Keep,
    /// `null` in the request: remove the stored value.
    Remove,
    /// Replace it by this value.
    Set(T),
}

impl<T> Patch<T> {
    /// The new value, if the request has one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Remove => None,
        }
    }

    /// The member after the change, where removing it leaves its default.
    pub fn or_default(&self, before: T) -> T
    where
        T: Copy + Default,
    {
        self.apply(Some(before)).unwrap_or_default()
    }

    fn apply(&self, before: Option<T>) -> Option<T>
    where
        T: Clone,
    {
        match self {
            Self::Keep => before,
            Self::Remove => None,
            Self::Set(value) => Some(value.clone()),
        }
    }
}

/// The change of a link's availability. A `PUT` keeps the members that it leaves out, because clients of the contract do not
/// know them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AvailabilityChange {
    valid_from: Patch<UnixMillis>,
    valid_until: Patch<UnixMillis>,
    max_scans: Patch<u32>,
    is_paused: Patch<bool>,
    /// Where it leads while it is closed.
    pub ended_url: Patch<Target>,
}

/// A link would end before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("validUntil must be after validFrom")]
pub struct EndsTooEarly;

impl AvailabilityChange {
    /// Reads the members of a body.
    pub fn read(members: &mut Members<'_>) -> Self {
        let valid_from = patch(members, "validFrom", |members| body::millis(members, "validFrom"));
        let valid_until = patch(members, "validUntil", |members| body::millis(members, "validUntil"));
        let max_scans = patch(members, "maxScans", |members| {
            members.typed("maxScans", "an integer from 1 to 1,000,000,000", |value| {
                u32::try_from(limits::integer(value)?).ok().filter(|most| (1..=MAX_SCANS).contains(most))
            })
        });
        let is_paused = patch(members, "status", |members| {
            members.typed("status", "active or paused", |value| match value.as_str()? {
                ACTIVE => Some(false),
                PAUSED => Some(true),
                _ => None,
            })
        });
        let ended_url = patch(members, "endedUrl", |members| {
            let parsed = Target::parse(members.text("endedUrl")?);
            parsed.map_err(|fault| members.fault(format!("endedUrl {fault}."))).ok()
        });
        if let (Some(from), Some(until)) = (valid_from.value(), valid_until.value())
            && until <= from
        {
            members.fault(format!("{EndsTooEarly}."));
        }
        Self { valid_from, valid_until, max_scans, is_paused, ended_url }
    }

    /// The stored availability with this change applied; `None` if no member remains.
    ///
    /// # Errors
    /// The link would end before it begins.
    pub fn apply(&self, before: Option<&Availability>) -> Result<Option<Box<Availability>>, EndsTooEarly> {
        let before = before.cloned().unwrap_or_default();
        let ended_url = match &self.ended_url {
            Patch::Keep => before.ended_url,
            Patch::Remove => None,
            Patch::Set(target) => Some(target.as_str().into()),
        };
        let after = Availability {
            valid_from: self.valid_from.apply(before.valid_from),
            valid_until: self.valid_until.apply(before.valid_until),
            max_scans: self.max_scans.apply(before.max_scans),
            scans: before.scans,
            is_paused: self.is_paused.or_default(before.is_paused),
            ended_url,
        };
        match (after.valid_from, after.valid_until) {
            (Some(from), Some(until)) if until <= from => Err(EndsTooEarly),
            _ => Ok((!after.is_empty()).then(|| Box::new(after))),
        }
    }
}

/// What a request says about a member.
pub(super) fn patch<'a, T>(
    members: &mut Members<'a>,
    name: &str,
    read: impl FnOnce(&mut Members<'a>) -> Option<T>,
) -> Patch<T> {
    match read(members) {
        Some(value) => Patch::Set(value),
        None if members.is_null(name) => Patch::Remove,
        None => Patch::Keep,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn members_of(availability: &Availability) -> Value {
        Value::Object(availability.members().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn read(body: &Value) -> Result<AvailabilityChange, Vec<String>> {
        let mut members = Members::of(body)?;
        let read = AvailabilityChange::read(&mut members);
        members.finish(Some(read))
    }

    #[test]
    fn every_bad_value_is_named() {
        let time = "must be an integer, in milliseconds since 1970.";
        let scans = "maxScans must be an integer from 1 to 1,000,000,000.";
        for (body, faults) in [
            (json!({}), vec![]),
            (
                json!({"validFrom": 0, "validUntil": 1, "status": "active", "endedUrl": "https://e.com/"}),
                vec![],
            ),
            (json!({"validFrom": null, "validUntil": null, "status": null, "endedUrl": null}), vec![]),
            (json!({"validFrom": "2026-11-27"}), vec![format!("validFrom {time}")]),
            (
                json!({"validFrom": -1, "validUntil": 1.5}),
                vec![format!("validFrom {time}"), format!("validUntil {time}")],
            ),
            (json!({"validUntil": 1e300}), vec![format!("validUntil {time}")]),
            (
                json!({"validFrom": 5, "validUntil": 5}),
                vec!["validUntil must be after validFrom.".to_owned()],
            ),
            (json!({"status": "deleted"}), vec!["status must be active or paused.".to_owned()]),
            (json!({"status": true}), vec!["status must be active or paused.".to_owned()]),
            (json!({"maxScans": 1e9, "status": null}), vec![]),
            (json!({"maxScans": 0}), vec![scans.to_owned()]),
            (json!({"maxScans": 1_000_000_001}), vec![scans.to_owned()]),
            (json!({"maxScans": "5"}), vec![scans.to_owned()]),
            (
                json!({"maxScans": 1.5, "endedUrl": 1}),
                vec![scans.to_owned(), "endedUrl must be a string.".to_owned()],
            ),
            (json!({"endedUrl": 1}), vec!["endedUrl must be a string.".to_owned()]),
        ] {
            assert_eq!(read(&body).err().unwrap_or_default(), faults, "{body}");
        }
        for url in [
            "javascript:alert(1)",
            "",
            "https://user:pass@e.com/",
            "https://e.com/{nothing",
            &"x".repeat(3_000),
        ] {
            let faults = read(&json!({"endedUrl": url})).unwrap_err();
            assert!(faults.len() == 1 && faults[0].starts_with("endedUrl "), "{url}: {faults:?}");
        }
    }

    #[test]
    fn what_is_left_out_stays_and_null_removes() {
        let change = |body: Value, before: Option<&Availability>| read(&body).unwrap().apply(before);
        assert_eq!(change(json!({}), None), Ok(None));
        let all = json!({"validFrom": 5, "validUntil": 9, "status": "paused", "endedUrl": "https://e.com/"});
        let before = change(all.clone(), None).unwrap().unwrap();
        assert_eq!(members_of(&before), all);
        assert_eq!(change(json!({}), Some(&before)), Ok(Some(before.clone())));
        for (body, after) in [
            (json!({"status": null}), json!({"validFrom": 5, "validUntil": 9, "endedUrl": "https://e.com/"})),
            (json!({"status": "active", "endedUrl": null}), json!({"validFrom": 5, "validUntil": 9})),
            (
                json!({"validFrom": null, "validUntil": 3}),
                json!({"validUntil": 3, "status": "paused", "endedUrl": "https://e.com/"}),
            ),
        ] {
            let made = change(body.clone(), Some(&before)).unwrap().unwrap();
            assert_eq!(members_of(&made), after, "{body}");
        }
        for body in [json!({"validFrom": 9}), json!({"validUntil": 5}), json!({"validUntil": 0})] {
            assert_eq!(change(body.clone(), Some(&before)), Err(EndsTooEarly), "{body}");
        }
        let counted =
            Availability { max_scans: Some(5), scans: [("e1".into(), 4)].into(), ..Availability::default() };
        let raised = change(json!({"maxScans": 9}), Some(&counted)).unwrap().unwrap();
        assert_eq!(*raised, Availability { max_scans: Some(9), ..counted.clone() }, "what was counted stays");
        let open = change(json!({"maxScans": null}), Some(&counted)).unwrap().unwrap();
        assert_eq!((open.max_scans, open.counted()), (None, 4), "for the next limit");
        let nothing = json!({"validFrom": null, "validUntil": null, "status": null, "endedUrl": null});
        assert_eq!(change(nothing, Some(&before)), Ok(None));
    }
}
