//! What requests say about when a link leads to its target.

use serde_json::{Map, Value};
use shared::{availability::Availability, target::Target, time::UnixMillis};

use super::{body, members::Members};

/// What a request says about a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Said<T> {
    /// Nothing: it stays.
    #[default]
    Nothing,
    /// `null`: it goes.
    Removed,
    /// This is it from now on.
    Value(T),
}

impl<T> Said<T> {
    /// The value that is given.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing | Self::Removed => None,
        }
    }

    fn after(&self, before: Option<T>) -> Option<T>
    where
        T: Clone,
    {
        match self {
            Self::Nothing => before,
            Self::Removed => None,
            Self::Value(value) => Some(value.clone()),
        }
    }
}

/// The change of a link's availability. What a `PUT` leaves out stays, because clients from before these members do not know
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AvailabilityChange {
    valid_from: Said<UnixMillis>,
    valid_until: Said<UnixMillis>,
    is_paused: Said<bool>,
    /// Where it leads while it is closed.
    pub ended_url: Said<Target>,
}

/// A link would end before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("validUntil must be after validFrom")]
pub struct EndsTooEarly;

impl AvailabilityChange {
    /// Reads the members of a body.
    pub fn read(members: &mut Members<'_>) -> Self {
        let valid_from = said(members, "validFrom", |members| body::millis(members, "validFrom"));
        let valid_until = said(members, "validUntil", |members| body::millis(members, "validUntil"));
        let is_paused = said(members, "status", |members| {
            members.typed("status", "active or paused", |value| match value.as_str()? {
                "active" => Some(false),
                "paused" => Some(true),
                _ => None,
            })
        });
        let ended_url = said(members, "endedUrl", |members| {
            let parsed = Target::parse(members.text("endedUrl")?);
            parsed.map_err(|fault| members.fault(format!("endedUrl {fault}."))).ok()
        });
        if let (Some(from), Some(until)) = (valid_from.value(), valid_until.value())
            && until <= from
        {
            members.fault(format!("{EndsTooEarly}."));
        }
        Self { valid_from, valid_until, is_paused, ended_url }
    }

    /// The availability after it; `None` where nothing is left of it.
    ///
    /// # Errors
    /// The end that stays, or the start, does not go with what is given.
    pub fn apply(&self, before: Option<&Availability>) -> Result<Option<Box<Availability>>, EndsTooEarly> {
        let before = before.cloned().unwrap_or_default();
        let ended_url = match &self.ended_url {
            Said::Nothing => before.ended_url,
            Said::Removed => None,
            Said::Value(target) => Some(target.as_str().into()),
        };
        let after = Availability {
            valid_from: self.valid_from.after(before.valid_from),
            valid_until: self.valid_until.after(before.valid_until),
            is_paused: self.is_paused.after(Some(before.is_paused)).unwrap_or_default(),
            ended_url,
        };
        match (after.valid_from, after.valid_until) {
            (Some(from), Some(until)) if until <= from => Err(EndsTooEarly),
            _ => Ok((!after.is_empty()).then(|| Box::new(after))),
        }
    }
}

fn said<'a, T>(
    members: &mut Members<'a>,
    name: &str,
    read: impl FnOnce(&mut Members<'a>) -> Option<T>,
) -> Said<T> {
    match read(members) {
        Some(value) => Said::Value(value),
        None if members.is_null(name) => Said::Removed,
        None => Said::Nothing,
    }
}

/// The members as requests give them.
#[must_use]
pub fn members_of(availability: &Availability) -> Map<String, Value> {
    let Availability { valid_from, valid_until, is_paused, ended_url } = availability;
    let members = [
        ("validFrom", valid_from.map(|at| at.0.into())),
        ("validUntil", valid_until.map(|at| at.0.into())),
        ("status", is_paused.then(|| "paused".into())),
        ("endedUrl", ended_url.as_deref().map(Into::into)),
    ];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<AvailabilityChange, Vec<String>> {
        let mut members = Members::of(body)?;
        let read = AvailabilityChange::read(&mut members);
        members.finish(Some(read))
    }

    #[test]
    fn every_bad_value_is_named() {
        let time = "must be an integer, in milliseconds since 1970.";
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
        assert_eq!(Value::Object(members_of(&before)), all);
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
            assert_eq!(Value::Object(members_of(&made)), after, "{body}");
        }
        for body in [json!({"validFrom": 9}), json!({"validUntil": 5}), json!({"validUntil": 0})] {
            assert_eq!(change(body.clone(), Some(&before)), Err(EndsTooEarly), "{body}");
        }
        let nothing = json!({"validFrom": null, "validUntil": null, "status": null, "endedUrl": null});
        assert_eq!(change(nothing, Some(&before)), Ok(None));
    }
}
