//! Which links a change is about: the conditions of the list of redirections.

use kernel::domain::{filter::Filter, listing::REDIRECTIONS, members::Members};
use redirects::domain::words::WordQuery;
use serde_json::{Map, Value};
use shared::id::{ProductId, ProjectId, ResourceId};

/// The members that select links: parameters of the list.
pub const MEMBERS: [&str; 7] = ["filter", "q", "platformId", "evrythngId", "product", "project", "domain"];

/// Which links a change is about; those that meet all conditions.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// A filter of redirections.
    pub filter: Option<Filter>,
    /// Words.
    pub words: WordQuery,
    /// The resource.
    pub platform_id: Option<ResourceId>,
    /// The product, and its Thngs.
    pub product: Option<ProductId>,
    /// The project that they are scoped to.
    pub project: Option<ProjectId>,
    /// The short domain.
    pub domain: Option<String>,
}

impl Selection {
    /// Reads the conditions among the members of a body; faults go to `members`.
    pub fn read(members: &mut Members<'_>) -> Self {
        if !MEMBERS.iter().any(|name| members.raw(name).is_some()) {
            members.fault("One of filter, q, platformId, product, project and domain is required.");
        }
        let filter = members.text("filter").and_then(|text| {
            Filter::parse(text, REDIRECTIONS.fields).map_err(|fault| members.fault(fault)).ok()
        });
        let words = members
            .text("q")
            .and_then(|text| WordQuery::parse(text).map_err(|fault| members.fault(fault)).ok());
        let platform: Option<ResourceId> = members.parsed("platformId");
        let alias: Option<ResourceId> = members.parsed("evrythngId");
        if let (Some(platform), Some(alias)) = (platform, alias)
            && platform != alias
        {
            members.fault("platformId and evrythngId must be the same.");
        }
        Self {
            filter,
            words: words.unwrap_or_default(),
            platform_id: platform.or(alias),
            product: members.parsed("product"),
            project: members.parsed("project"),
            domain: members.text("domain").map(str::to_ascii_lowercase),
        }
    }

    /// The conditions of a body as they were sent.
    #[must_use]
    pub fn sent(body: &Value) -> Map<String, Value> {
        let members = body.as_object().into_iter().flatten();
        let own = members.filter(|(name, value)| MEMBERS.contains(&name.as_str()) && !value.is_null());
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The conditions that [`Self::sent`] gave.
    ///
    /// # Errors
    /// This release cannot read them.
    pub fn stored(sent: &Map<String, Value>) -> Result<Self, Vec<String>> {
        let value = Value::Object(sent.clone());
        let mut members = Members::of(&value)?;
        let selection = Self::read(&mut members);
        members.finish(Some(selection))
    }
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    #[test]
    fn every_fault_is_named_at_once() {
        for (body, expected) in [
            (
                json!({"filter": "tags=a", "q": "shoe", "product": ID, "project": ID, "domain": "tn.gg"}),
                vec![],
            ),
            (json!({"evrythngId": ID, "patch": {}}), vec![]),
            (json!({"filter": null}), vec!["One of filter"]),
            (
                json!({"filter": "colour=red", "q": "!", "platformId": "x", "product": 1, "domain": []}),
                vec!["filter: ", "q must hold", "platformId: ", "product must be", "domain must be"],
            ),
            (json!({"platformId": ID, "evrythngId": "UKXAGyEf8SQ5eTDmVgGpHqAb"}), vec!["must be the same"]),
        ] {
            let read = |body: &Value| {
                let mut members = Members::of(body)?;
                let selection = Selection::read(&mut members);
                members.finish(Some(selection))
            };
            assert_faults(&body, read, &expected);
            if expected.is_empty() {
                assert!(Selection::stored(&Selection::sent(&body)).is_ok(), "{body}");
            }
        }
    }
}
