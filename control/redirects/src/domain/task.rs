//! Tasks of batches: create Thngs and their short URLs from a template in the background.
//!
//! Spec gap: the platform API does not show batches and tasks; their form is that of the vendor's client 5.4.0.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared::{
    id::{BatchId, TaskId},
    target::Target,
    time::UnixMillis,
};

use super::{
    body::Purpose,
    common::{Common, Stamp},
    limits::{check_nested, integer, shorten},
    members::Members,
    named::Named,
    permission::Subject,
    resource::ThngChange,
};

/// The one type of task that there is.
pub const POPULATING: &str = "POPULATING";

/// Most Thngs of one task.
pub const MAX_QUANTITY: u32 = 10_000;

/// The one way to say how many.
const FIXED_AMOUNT: &str = "FIXED_AMOUNT";
/// Short ids that are the ids of their Thngs.
const THNG_ID: &str = "THNG_ID";

shared::words! {
    /// How far a task is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TaskStatus {
        /// It waits, or is carried out.
        Executing = "EXECUTING",
        /// Everything was created.
        Completed = "COMPLETED",
        /// It was given up; what was created until then stays.
        Failed = "FAILED",
    } else InvalidStatus
}

/// A text that is no status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no status of a task")]
pub struct InvalidStatus;

/// The members of a task beside its type; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskDetails {
    /// Nothing of it is set: a task has what its batch has.
    #[serde(flatten)]
    pub common: Common,
    /// Its input, as it was sent.
    pub input_parameters: Map<String, Value>,
    /// How many Thngs it creates.
    pub quantity: u32,
    /// How many it has created.
    pub done: u32,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<UnixMillis>,
    /// Id of the operator who asked.
    pub operator: String,
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its type.
    pub kind: String,
    /// Its batch.
    pub batch: BatchId,
    /// How far it is.
    pub status: TaskStatus,
    /// Everything else.
    pub details: TaskDetails,
}

impl Task {
    /// The task after this many more Thngs were created at `now`.
    #[must_use]
    pub fn advance(mut self, made: u32, now: UnixMillis) -> Self {
        self.details.done = self.details.done.saturating_add(made).min(self.details.quantity);
        if self.details.done == self.details.quantity {
            return self.end(TaskStatus::Completed, now);
        }
        Self { stamp: self.stamp.touch(now), ..self }
    }

    /// The task that cannot be carried out, for this reason.
    #[must_use]
    pub fn fail(mut self, message: String, now: UnixMillis) -> Self {
        self.details.message = Some(message);
        self.end(TaskStatus::Failed, now)
    }

    fn end(mut self, status: TaskStatus, now: UnixMillis) -> Self {
        self.stamp = self.stamp.touch(now);
        self.details.completed_at = Some(self.stamp.updated_at);
        Self { status, ..self }
    }
}

/// The short URLs that a task creates for its Thngs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortUrls {
    /// Where they lead.
    pub target: Target,
    /// Their domain; without one the account's first.
    pub domain: Option<String>,
    /// Whether the short id is the Thng's id; else it is a random one.
    pub by_thng_id: bool,
}

/// The output of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    /// How many Thngs.
    pub quantity: u32,
    /// The template of each.
    pub template: ThngChange,
    /// Their short URLs, if they should have some.
    pub short_urls: Option<ShortUrls>,
}

/// Parses the body of `POST /batches/:id/tasks`; also returns the input as sent.
///
/// # Errors
/// Every fault found, each naming its member.
pub fn parse(body: &Value) -> Result<(Population, Map<String, Value>), Vec<String>> {
    let mut members = Members::of(body)?;
    word(&mut members, "type", POPULATING);
    let Some(input) = members.raw("inputParameters") else {
        members.fault("inputParameters is required.");
        return members.finish(None);
    };
    if let Err(fault) = check_nested(input) {
        members.fault(format!("inputParameters {fault}."));
    }
    let population = match Population::parse(input) {
        Ok(population) => Some(population),
        Err(faults) => {
            faults.into_iter().for_each(|fault| members.fault(fault));
            None
        }
    };
    let sent = input.as_object().cloned();
    members.finish(population.zip(sent))
}

impl Population {
    /// Reads `inputParameters`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(input: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::within(input, "inputParameters")?;
        word(&mut members, "type", FIXED_AMOUNT);
        if members.boolean("generateThngs") == Some(false) {
            let path = members.path("generateThngs");
            members.fault(format!("{path} must be true: a task that makes no Thngs has nothing to do."));
        }
        let quantity = quantity(&mut members);
        let template = template(&mut members);
        let short_urls = match members.boolean("generateRedirections") {
            Some(true) => short_urls(&mut members).map(Some),
            Some(false) | None => Some(None),
        };
        let whole = quantity.zip(template).zip(short_urls);
        members.finish(whole.map(|((quantity, template), short_urls)| Self {
            quantity,
            template,
            short_urls,
        }))
    }
}

/// A member that must have one fixed value.
fn word(members: &mut Members<'_>, name: &str, expected: &str) {
    let path = members.path(name);
    match members.text(name) {
        Some(text) if text == expected => {}
        Some(other) => members.fault(format!("{path} must be {expected}, not {:?}.", shorten(other))),
        None if members.raw(name).is_none() => members.fault(format!("{path} is required.")),
        None => {}
    }
}

fn quantity(members: &mut Members<'_>) -> Option<u32> {
    let path = members.path("quantity");
    let Some(value) = members.raw("quantity") else {
        members.fault(format!("{path} is required."));
        return None;
    };
    let quantity = integer(value).and_then(|number| u32::try_from(number).ok());
    let quantity = quantity.filter(|number| (1..=MAX_QUANTITY).contains(number));
    if quantity.is_none() {
        members.fault(format!("{path} must be a whole number from 1 to {MAX_QUANTITY}."));
    }
    quantity
}

fn template(members: &mut Members<'_>) -> Option<ThngChange> {
    let path = members.path("thngTemplate");
    let Some(value) = members.raw("thngTemplate") else {
        members.fault(format!("{path} is required."));
        return None;
    };
    match ThngChange::parse(value, Purpose::Create) {
        Ok(template) if template.details.common.identifiers.is_some() => {
            members.fault(format!("{path}.identifiers must be left out: they are of one Thng only."));
            None
        }
        Ok(template) => Some(template),
        Err(faults) => {
            faults.into_iter().for_each(|fault| members.fault(format!("{path}: {fault}")));
            None
        }
    }
}

fn short_urls(members: &mut Members<'_>) -> Option<ShortUrls> {
    let path = members.path("defaultRedirectUrl");
    if members.raw("defaultRedirectUrl").is_none() {
        members.fault(format!("{path} is required."));
    }
    let target = members
        .text("defaultRedirectUrl")
        .and_then(|text| Target::parse(text).map_err(|fault| members.fault(format!("{path} {fault}."))).ok());
    let domain = members.text("shortDomain").map(str::to_ascii_lowercase);
    let template = members.path("shortIdTemplate");
    let by_thng_id = match members.raw("shortIdTemplate").map(|value| Members::within(value, &template)) {
        None => false,
        Some(Ok(mut inside)) => {
            word(&mut inside, "type", THNG_ID);
            if let Err(faults) = inside.finish(Some(())) {
                faults.into_iter().for_each(|fault| members.fault(fault));
            }
            true
        }
        Some(Err(faults)) => {
            faults.into_iter().for_each(|fault| members.fault(fault));
            false
        }
    };
    Some(ShortUrls { target: target?, domain, by_thng_id })
}

/// A task is called by its type, and belongs to whoever its batch belongs to.
impl Named for Task {
    type Id = TaskId;
    type Details = TaskDetails;

    const KIND: &'static str = "task";
    const SUBJECT: Subject = Subject::Batches;

    fn id(&self) -> TaskId {
        self.id
    }

    fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    fn stamp_mut(&mut self) -> &mut Stamp {
        &mut self.stamp
    }

    fn name(&self) -> &str {
        &self.kind
    }

    fn details(&self) -> &TaskDetails {
        &self.details
    }

    fn common(&self) -> &Common {
        &self.details.common
    }
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    fn with(member: &str, value: Value) -> Value {
        let mut body = json!({"type": "POPULATING", "inputParameters": {"type": "FIXED_AMOUNT",
            "generateThngs": true, "generateRedirections": true, "defaultRedirectUrl": "https://example.com",
            "thngTemplate": {"name": "t"}, "shortDomain": "tn.gg", "quantity": 1,
            "shortIdTemplate": {"type": "THNG_ID"}}});
        match member.strip_prefix("in.") {
            Some(inner) => body["inputParameters"][inner] = value,
            None => body[member] = value,
        }
        body
    }

    #[test]
    fn each_fault_of_a_task_is_named() {
        let cases: Vec<(Value, &[&str])> = vec![
            (with("more", json!(1)), &[]),
            (with("in.shortIdTemplate", Value::Null), &[]),
            (with("in.shortDomain", Value::Null), &[]),
            (with("in.quantity", json!(10_000)), &[]),
            (json!([]), &["must be a JSON object"]),
            (json!({}), &["type is required", "inputParameters is required"]),
            (with("type", json!("DELETING")), &["type must be POPULATING"]),
            (with("inputParameters", json!(1)), &["inputParameters must be an object"]),
            (with("in.type", json!("LIST")), &["inputParameters.type must be FIXED_AMOUNT"]),
            (with("in.quantity", json!(0)), &["inputParameters.quantity must be"]),
            (with("in.quantity", json!(10_001)), &["from 1 to 10000"]),
            (with("in.quantity", json!(1.5)), &["inputParameters.quantity must be"]),
            (with("in.generateThngs", json!(false)), &["inputParameters.generateThngs must be true"]),
            (with("in.thngTemplate", json!({})), &["inputParameters.thngTemplate: name is required"]),
            (
                with("in.thngTemplate", json!({"name": "t", "identifiers": {"gs1:21": "A"}})),
                &["inputParameters.thngTemplate.identifiers must be left out"],
            ),
            (with("in.defaultRedirectUrl", Value::Null), &["inputParameters.defaultRedirectUrl is required"]),
            (with("in.defaultRedirectUrl", json!("javascript:1")), &["inputParameters.defaultRedirectUrl"]),
            (
                with("in.shortIdTemplate", json!({"type": "COUNTER"})),
                &["shortIdTemplate.type must be THNG_ID"],
            ),
        ];
        for (body, expected) in cases {
            assert_faults(&body, parse, expected);
        }
    }
}
