//! The body of `POST /jobs/qr`.

use kernel::domain::{limits::MAX_NAME, members::Members};
use print::PrintSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::source::Source;

/// Members that are not about drawing.
const OWN: [&str; 3] = ["name", "source", "waitForEdges"];

shared::words! {
    /// Whether an order waits until edges hold its links.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum WaitForEdges {
        /// It does not wait.
        None = "none",
        /// It waits for a minute, and names those that do not hold them then.
        #[default]
        Report = "report",
        /// It is not released before all hold them.
        Require = "require",
    }
}

/// An order as a request asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderDraft {
    /// What people call it; may be empty.
    pub name: String,
    /// Which codes.
    pub source: Source,
    /// `source` as it was sent.
    pub sent_source: Value,
    /// How they are drawn.
    pub spec: PrintSpec,
    /// Whether edges are waited for.
    pub wait: WaitForEdges,
}

impl OrderDraft {
    /// Reads a body.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, max_codes: u64) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = name(&mut members);
        let sent_source = members.raw("source").cloned();
        let source = match &sent_source {
            None => Err(vec!["source is required.".to_owned()]),
            Some(value) => Source::parse(value, max_codes),
        };
        let source = source.map_err(|faults| faults.into_iter().for_each(|fault| members.fault(fault))).ok();
        let wait = match members.text("waitForEdges") {
            None => members.raw("waitForEdges").is_none().then(WaitForEdges::default),
            Some(text) => {
                let wait = WaitForEdges::ALL.into_iter().find(|wait| wait.as_str() == text);
                if wait.is_none() {
                    members.fault("waitForEdges must be none, report or require.");
                }
                wait
            }
        };
        let others = body.as_object().into_iter().flatten();
        // `null` counts as absent, as everywhere.
        let others = others.filter(|(name, value)| !OWN.contains(&name.as_str()) && !value.is_null());
        let others: Map<String, Value> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        let spec = PrintSpec::parse(&others)
            .map_err(|faults| faults.into_iter().for_each(|fault| members.fault(fault)))
            .ok();
        let whole = name.zip(source).zip(sent_source).zip(spec).zip(wait);
        members.finish(whole.map(|((((name, source), sent_source), spec), wait)| Self {
            name,
            source,
            sent_source,
            spec,
            wait,
        }))
    }
}

/// What people call an order.
pub(super) fn name(members: &mut Members<'_>) -> Option<String> {
    let Some(name) = members.text("name") else {
        return members.raw("name").is_none().then(String::new);
    };
    let fits = (1..=MAX_NAME).contains(&name.chars().count()) && !name.contains('\0');
    if !fits {
        members.fault(format!("name must have 1 to {MAX_NAME} characters, without U+0000."));
    }
    fits.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_of_all_parts_are_named_at_once() {
        let body =
            json!({"name": "", "waitForEdges": "maybe", "format": "cuneiform", "source": {"filter": 1}});
        let faults = OrderDraft::parse(&body, 10).unwrap_err();
        for part in ["name must", "waitForEdges must", "format", "source.filter"] {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
        }
        let faults = OrderDraft::parse(&json!({"format": "zpl", "colour": 1}), 10).unwrap_err();
        for part in ["source is required", "colour"] {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
        }
        assert!(OrderDraft::parse(&json!([]), 10).is_err());
    }
}
