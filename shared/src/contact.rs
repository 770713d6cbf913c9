//! Where people report abuse to whoever runs the platform.

use std::{fmt, str::FromStr};

use url::Url;

/// Longest contact, in bytes.
const MAX_BYTES: usize = 256;

/// A mail address or an `https` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact(Box<str>);

/// A text that is neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give a mail address or an https URL")]
pub struct NotAContact;

impl FromStr for Contact {
    type Err = NotAContact;

    fn from_str(text: &str) -> Result<Self, NotAContact> {
        let text = text.trim();
        let is_plain = text.len() <= MAX_BYTES
            && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"'&\\`".contains(&byte));
        let is_url = || text.starts_with("https://") && Url::parse(text).is_ok();
        let is_mail = || {
            let named = |(name, host): (&str, &str)| !name.is_empty() && host.contains('.');
            !text.contains([':', '/', '?', '#', ',', ';'])
                && text.matches('@').count() == 1
                && text.split_once('@').is_some_and(named)
        };
        if is_plain && (is_url() || is_mail()) { Ok(Self(text.into())) } else { Err(NotAContact) }
    }
}

/// As people read it.
impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Contact {
    /// As a link leads to it: a URL, or `mailto:` with the address.
    #[must_use]
    pub fn uri(&self) -> String {
        if self.0.starts_with("https://") { self.0.to_string() } else { format!("mailto:{}", self.0) }
    }

    /// A paragraph of HTML that names it. A contact has no character that HTML would read as something else.
    #[must_use]
    pub fn html(&self) -> String {
        format!("<p><small>Report abuse: <a href=\"{}\">{self}</a></small></p>", self.uri())
    }

    /// The text of `/.well-known/security.txt` (RFC 9116).
    ///
    /// It is valid for half a year from `now_ms` (milliseconds since 1970), and made anew for each request.
    #[must_use]
    pub fn security_txt(&self, now_ms: i64) -> String {
        const HALF_A_YEAR_DAYS: i64 = 182;
        let (year, month, day) = date(now_ms.div_euclid(86_400_000) + HALF_A_YEAR_DAYS);
        format!("Contact: {}\nExpires: {year:04}-{month:02}-{day:02}T00:00:00Z\n", self.uri())
    }
}

/// Year, month and day of a day since 1970-01-01, by the Gregorian calendar.
fn date(day: i64) -> (i64, i64, i64) {
    // Years begin in March, so that the leap day is their last. 400 years have 146,097 days.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let of_year = |year: i64| of_era - (365 * year + year / 4 - year / 100);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let month = (5 * of_year(year) + 2) / 153;
    let day = of_year(year) - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (year + era * 400, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_urls_are_contacts() {
        for (text, uri) in [
            ("abuse@example.com", Some("mailto:abuse@example.com")),
            (" abuse@example.com ", Some("mailto:abuse@example.com")),
            ("https://example.com/report?x=1", Some("https://example.com/report?x=1")),
            ("http://example.com/", None),
            ("javascript:alert(1)", None),
            ("mailto:a@example.com", None),
            ("a@b@example.com", None),
            ("@example.com", None),
            ("abuse@localhost", None),
            ("a b@example.com", None),
            ("<b>@example.com", None),
            ("https://", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Contact>().ok().map(|contact| contact.uri()).as_deref(), uri, "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // date -u -d @SECONDS +%F
        for (seconds, expected) in [
            (0, (1970, 1, 1)),
            (951_782_400, (2000, 2, 29)),
            (951_868_800, (2000, 3, 1)),
            (1_767_225_599, (2025, 12, 31)),
            (1_767_225_600, (2026, 1, 1)),
            (4_107_542_400, (2100, 3, 1)),
        ] {
            assert_eq!(date(seconds / 86_400), expected, "{seconds}");
        }
        let contact: Contact = "abuse@example.com".parse().unwrap();
        let text = contact.security_txt(1_767_225_600_000);
        assert_eq!(text, "Contact: mailto:abuse@example.com\nExpires: 2026-07-02T00:00:00Z\n");
    }
}
