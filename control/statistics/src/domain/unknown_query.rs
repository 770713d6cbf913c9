//! A question about requests for unknown ids: a range, and a domain.

use shared::{short_url::Host, time::UnixMillis};

use super::{periods::Period, stats_query};

/// Longest range: as long as counts are kept.
const MAX_HOURS: i32 = 31 * 24;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownQuery {
    /// The range in whole hours.
    pub range: Period,
    /// The domain; `None` for all of the account.
    pub domain: Option<String>,
    /// Most rows.
    pub top: u32,
}

impl UnknownQuery {
    /// Reads a question; times are as in [`stats_query`].
    ///
    /// # Errors
    /// Every fault found, each naming its parameter.
    pub fn parse(
        from: Option<&str>,
        to: Option<&str>,
        domain: Option<&str>,
        top: u32,
        now: UnixMillis,
    ) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let range = stats_query::range(from, to, &jiff::tz::TimeZone::UTC, now, &mut faults);
        if range.is_some_and(|range| range.hours() > MAX_HOURS) {
            faults.push(format!("from and to: the range may have at most {} days.", MAX_HOURS / 24));
        }
        let domain = domain.and_then(|text| {
            let host =
                text.parse::<Host>().map_err(|_| faults.push("domain must be a host.".to_owned())).ok()?;
            Some(host.to_string())
        });
        match range {
            Some(range) if faults.is_empty() => Ok(Self { range, domain, top }),
            _ => Err(faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_names_its_parameter() {
        let now = UnixMillis(1_767_225_600_000);
        let query = UnknownQuery::parse(None, None, Some("tn.gg"), 5, now).unwrap();
        assert_eq!((query.range.hours(), query.domain.as_deref(), query.top), (168, Some("tn.gg"), 5));
        for (from, to, domain, fault) in [
            (Some("x"), None, None, "from must be"),
            (None, Some("x"), None, "to must be"),
            (Some("2025-01-01"), None, None, "from and to: the range may have at most 31 days"),
            (None, None, Some("a b"), "domain must be a host"),
        ] {
            let faults = UnknownQuery::parse(from, to, domain, 5, now).unwrap_err();
            assert!(faults[0].starts_with(fault), "{faults:?}");
        }
    }
}
