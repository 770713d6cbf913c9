//! Which form of an answer a request prefers.

use axum::http::{HeaderMap, header};

/// Whether `Accept` names a media type, and another one not with a higher weight. A range such as `*/*` names none.
#[must_use]
pub fn prefers(headers: &HeaderMap, kind: &str, over: &str) -> bool {
    let weight = |kind: &str| {
        let ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let of = ranges.flat_map(|value| value.split(',')).filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_kind = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(kind));
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            is_kind.then(|| weight.map_or(1.0, |weight| weight.parse::<f32>().unwrap_or_default()))
        });
        of.fold(0.0, f32::max)
    };
    let wanted = weight(kind);
    wanted > 0.0 && wanted >= weight(over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_sent_to_whoever_prefers_it() {
        for (accept, expected) in [
            ("text/csv", true),
            ("TEXT/CSV; charset=utf-8", true),
            ("text/csv;q=0.5, application/json;q=0.4", true),
            ("text/csv;q=0.5, application/json", false),
            ("text/csv;q=0", false),
            ("application/json", false),
            ("*/*", false),
            ("text/*", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(prefers(&headers, "text/csv", "application/json"), expected, "{accept}");
        }
        assert!(!prefers(&HeaderMap::new(), "text/csv", "application/json"));
    }
}
