//! Values of other shorteners' exports: texts, times, targets.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;
use url::Url;

/// Characters that targets of Waymark must not have as they are; braces would be tags.
const ENCODED: &AsciiSet =
    &CONTROLS.add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'|').add(b'{').add(b'}');

/// Numbers below are seconds since 1970, others milliseconds: 1973 in milliseconds, the year 5138 in seconds.
const LEAST_MILLIS: u64 = 100_000_000_000;

/// What a database writes into CSV where there is nothing.
const NULLS: [&str; 2] = ["NULL", "\\N"];

/// What says no, in any case; PostgreSQL writes `f` into CSV.
const NOS: [&str; 6] = ["0", "false", "no", "f", "n", "off"];

/// The text of a value; `None` if it is empty.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let text = text.trim();
            (!text.is_empty() && !NULLS.contains(&text)).then(|| text.to_owned())
        }
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a value says something: it is not empty, zero, or a no.
pub(super) fn says(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
        Value::Number(_) | Value::String(_) => {
            text(value).is_some_and(|text| !NOS.iter().any(|no| text.eq_ignore_ascii_case(no)))
        }
    }
}

/// A time in milliseconds since 1970: ISO 8601 (without an offset it is UTC), or a number of seconds or milliseconds.
pub(super) fn millis(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse::<i64>() {
        return if number.unsigned_abs() < LEAST_MILLIS { number.checked_mul(1_000) } else { Some(number) };
    }
    let at = text.parse::<Timestamp>().ok().or_else(|| {
        let local: DateTime = text.parse().ok()?;
        Some(local.to_zoned_datetime(TimeZone::UTC).ok()?.timestamp())
    })?;
    Some(at.as_millisecond())
}

/// The tags of an array of texts or named objects, or of a text.
pub(super) fn tags(value: &Value) -> Vec<String> {
    let name = |tag: &Value| text(tag).or_else(|| text(tag.get("name")?));
    match value {
        Value::Array(all) => all.iter().filter_map(name).collect(),
        Value::String(_) => {
            let all = text(value).unwrap_or_default();
            // The web client of Shlink separates them by bars.
            all.split([',', '|']).map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// A target that leads where the other service led, with the characters that Waymark takes.
pub(super) fn target(url: &str) -> String {
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    let parsed = if is_plain { None } else { Url::parse(url).ok().map(String::from) };
    utf8_percent_encode(parsed.as_deref().unwrap_or(url), ENCODED).to_string()
}

/// A short link without its scheme.
pub(super) fn without_scheme(link: &str) -> &str {
    link.split_once("://").map_or(link, |(_, rest)| rest).trim_end_matches('/')
}

/// The path of a short link behind its host; a text without a host is the code itself.
pub(super) fn code(link: &str) -> &str {
    let link = without_scheme(link);
    let path = link.split_once('/').map_or(link, |(_, path)| path);
    path.split(['?', '#']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_of_all_sources_are_read() {
        for (text, expected) in [
            ("2016-08-21T20:34:16+02:00", Some(1_471_804_456_000)),
            ("2016-08-21T18:34:16+0000", Some(1_471_804_456_000)),
            ("2016-08-21T18:34:16.000Z", Some(1_471_804_456_000)),
            ("2016-08-21 18:34:16", Some(1_471_804_456_000)),
            ("1471804456", Some(1_471_804_456_000)),
            ("1471804456000", Some(1_471_804_456_000)),
            ("2016-08-21", Some(1_471_737_600_000)),
            ("yesterday", None),
            ("9223372036854775807", Some(i64::MAX)),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }

    #[test]
    fn targets_lead_where_they_led() {
        for (url, expected) in [
            ("https://e.com/?q={a}|b", "https://e.com/?q=%7Ba%7D%7Cb"),
            ("https://e.com/a%20b?c=d", "https://e.com/a%20b?c=d"),
            ("https://e.com/größe und", "https://e.com/gr%C3%B6%C3%9Fe%20und"),
            ("https://münchen.de/", "https://xn--mnchen-3ya.de/"),
        ] {
            assert_eq!(target(url), expected);
        }
    }

    #[test]
    fn codes_are_behind_the_host() {
        for (link, expected) in [
            ("https://bit.ly/2Ab", "2Ab"),
            ("bit.ly/2Ab", "2Ab"),
            ("https://go.example.com/a/b/", "a/b"),
            ("https://s.example/abc?x=1", "abc"),
            ("abc", "abc"),
        ] {
            assert_eq!(code(link), expected, "{link}");
        }
    }

    #[test]
    fn empty_values_say_nothing() {
        for value in [json!(null), json!(0), json!([]), json!(false)] {
            assert!(!says(&value), "{value}");
        }
        for text in ["", "NULL", "No", "f", "F", "off"] {
            assert!(!says(&json!(text)), "{text}");
        }
        for value in
            [json!("x"), json!("t"), json!(2), json!(["a"]), json!({"a": 1}), json!(true), json!("Yes")]
        {
            assert!(says(&value), "{value}");
        }
        assert_eq!(tags(&json!([{"id": "1", "name": "a"}, "b"])), ["a", "b"]);
        assert_eq!(tags(&json!("a, b|c,")), ["a", "b", "c"]);
    }
}
