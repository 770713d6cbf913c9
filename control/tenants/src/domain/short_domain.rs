//! What operators may change of a short domain.

use serde_json::Value;
use shared::short_url::{MAX_REDIRECT_AGE, ShortDomain};

use super::members::Members;

const REDIRECT_MAX_AGE: &str = "redirectMaxAge";

/// The members of an update of a short domain; `None` means not given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShortDomainChange {
    /// Seconds for which browsers and shared caches may keep its redirects; the inner `None`: they must not.
    pub redirect_max_age: Option<Option<u32>>,
}

impl ShortDomainChange {
    /// Reads the body of `PUT /accounts/:id/domains/:domain`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let redirect_max_age = if members.is_null(REDIRECT_MAX_AGE) {
            Some(None)
        } else {
            let expected = format!("a whole number of seconds from 0 to {MAX_REDIRECT_AGE}, or null");
            let seconds = members.typed(REDIRECT_MAX_AGE, &expected, |value| {
                u32::try_from(value.as_u64()?).ok().filter(|seconds| *seconds <= MAX_REDIRECT_AGE)
            });
            seconds.map(Some)
        };
        members.finish(Some(Self { redirect_max_age }))
    }

    /// The domain after the change.
    #[must_use]
    pub fn apply(self, domain: ShortDomain) -> ShortDomain {
        let redirect_max_age = self.redirect_max_age.unwrap_or(domain.redirect_max_age);
        ShortDomain { redirect_max_age, ..domain }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::short_url::Scheme;

    use super::*;

    #[test]
    fn ages_are_seconds_of_a_day_at_most() {
        for (body, expected) in [
            (json!({}), Some(Some(9))),
            (json!({"redirectMaxAge": null}), Some(None)),
            (json!({"redirectMaxAge": 0}), Some(Some(0))),
            (json!({"redirectMaxAge": 86_400}), Some(Some(86_400))),
            (json!({"redirectMaxAge": 86_401}), None),
            (json!({"redirectMaxAge": -1}), None),
            (json!({"redirectMaxAge": 1.5}), None),
            (json!({"redirectMaxAge": "60"}), None),
            (json!({"redirectMaxAge": true}), None),
            // 60 in the last 32 bits.
            (json!({"redirectMaxAge": 4_294_967_356_u64}), None),
        ] {
            let before = ShortDomain {
                redirect_max_age: Some(9),
                ..ShortDomain::new(Scheme::Https, "tn.gg").unwrap()
            };
            let change = ShortDomainChange::parse(&body);
            let text = "redirectMaxAge must be a whole number of seconds from 0 to 86400, or null.";
            match expected {
                Some(after) => assert_eq!(change.unwrap().apply(before).redirect_max_age, after, "{body}"),
                None => assert_eq!(change.unwrap_err(), [text], "{body}"),
            }
        }
        assert_eq!(ShortDomainChange::parse(&json!([])).unwrap_err(), ["The body must be a JSON object."]);
    }
}
