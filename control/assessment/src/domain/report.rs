//! Reports of finders: what somebody wrote who scanned an item that may be a copy, and the token that lets them.

use serde_json::Value;
use shared::{id::ReportId, redirect::RedirectKey, time::UnixMillis};

use super::{email::Email, limits::check_text, members::Members};

/// Most characters of a report.
pub const MAX_REPORT: usize = 2_000;
/// Most characters of a token: 19 digits, an id, 64 digits of the signature and two dots have 109.
pub const MAX_TOKEN: usize = 128;
/// Most reports about an item within a day: a copy that sells well is found by several people.
pub const MAX_OF_ITEM: i64 = 20;
/// Most reports to an account within a day: with 2,000 characters each they are some megabytes.
pub const MAX_OF_ACCOUNT: i64 = 500;
/// Most reports that a case shows, the newest ones.
pub const MAX_SHOWN: i64 = 100;

/// How long a form may be filled in.
const TOKEN_MS: i64 = 60 * 60 * 1_000;
/// How much the clock of the replica that made a token may be ahead.
const SKEW_MS: i64 = 60 * 1_000;

/// What is stored of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinderReport {
    /// Its id, which is that of its token.
    pub id: ReportId,
    /// The short URL that was scanned.
    pub short_url: String,
    /// What was written.
    pub text: String,
    /// Where the finder can be asked.
    pub mail: Option<String>,
    /// Whether there is a photo with it.
    pub has_photo: bool,
    /// When it came.
    pub created_at: UnixMillis,
}

/// What a finder sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReport {
    /// The token of the form.
    pub token: String,
    /// 1 to [`MAX_REPORT`] characters, not only blanks.
    pub text: String,
    /// Where to ask, if the finder wants to be asked.
    pub mail: Option<String>,
}

impl NewReport {
    /// Reads the body of `POST /redirections/:shortId/reports`; `None` asks for the token of a form.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Option<Self>, Vec<String>> {
        let mut members = Members::of(body)?;
        if ["token", "text", "mail"].iter().all(|name| members.raw(name).is_none()) {
            return Ok(None);
        }
        for name in ["token", "text"] {
            if members.raw(name).is_none() {
                members.fault(format!("{name} is required, unless a form is asked for."));
            }
        }
        let token = members.text("token");
        if let Some(Err(fault)) = token.map(|token| check_text(token, 0, MAX_TOKEN)) {
            members.fault(format!("token {fault}."));
        }
        let text = members.text("text");
        if let Some(text) = text {
            if let Err(fault) = check_text(text, 1, MAX_REPORT) {
                members.fault(format!("text {fault}."));
            } else if text.trim().is_empty() {
                members.fault("text must not be blank.");
            }
        }
        let mail = members.text("mail");
        if let Some(Err(fault)) = mail.map(Email::parse) {
            members.fault(format!("mail {fault}."));
        }
        let report = token.zip(text).map(|(token, text)| Self {
            token: token.to_owned(),
            text: text.trim().to_owned(),
            mail: mail.map(str::to_owned),
        });
        members.finish(report).map(Some)
    }
}

/// Allows one report about the item of one short URL, for an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    /// The id that the report gets: a second one with it is the same report.
    pub id: ReportId,
    /// When it was given.
    pub issued: UnixMillis,
}

impl Permit {
    /// The permit as the form carries it: `<issued>.<id>.<signature>`.
    #[must_use]
    pub fn token(self, key: &[u8; 32], link: &RedirectKey) -> String {
        format!("{}.{}.{}", self.issued.0, self.id, self.signature(key, link).to_hex())
    }

    /// Reads a token; `None` if it is not ours, of another short URL, or not valid at `now`.
    #[must_use]
    pub fn read(token: &str, key: &[u8; 32], link: &RedirectKey, now: UnixMillis) -> Option<Self> {
        let mut parts = token.splitn(3, '.');
        let issued = UnixMillis(parts.next()?.parse().ok()?);
        let permit = Self { id: parts.next()?.parse().ok()?, issued };
        let given = blake3::Hash::from_hex(parts.next()?).ok()?;
        let age_ms = now.0.checked_sub(issued.0)?;
        // The comparison of two hashes takes the same time wherever they differ.
        (permit.signature(key, link) == given && (-SKEW_MS..=TOKEN_MS).contains(&age_ms)).then_some(permit)
    }

    fn signature(self, key: &[u8; 32], link: &RedirectKey) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(key);
        // Parts of fixed length; then a host, which has no slash.
        hasher.update(&self.issued.0.to_be_bytes()).update(self.id.as_str().as_bytes());
        hasher.update(link.domain.as_bytes()).update(b"/").update(link.folded.as_bytes());
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_good_for_its_short_url_and_its_hour() {
        let (key, link, issued) = ([7; 32], RedirectKey::new("tn.gg", "SHOE"), UnixMillis(10 * TOKEN_MS));
        let permit = Permit { id: ReportId::new(issued.0, [1; 16]), issued };
        let token = permit.token(&key, &link);
        assert!(token.len() <= MAX_TOKEN, "{token}");
        let other = RedirectKey::new("tn.gg", "BOOT");
        let later = format!("1{token}");
        for (token, key, link, age_ms, expected) in [
            (&token, [7; 32], &link, 0, true),
            (&token, [7; 32], &link, TOKEN_MS, true),
            (&token, [7; 32], &link, -SKEW_MS, true),
            (&token, [7; 32], &link, TOKEN_MS + 1, false),
            (&token, [7; 32], &link, -SKEW_MS - 1, false),
            (&token, [8; 32], &link, 0, false),
            (&token, [7; 32], &other, 0, false),
            (&later, [7; 32], &link, 0, false),
            (&String::new(), [7; 32], &link, 0, false),
            (&format!("{}.{}.", i64::MIN, permit.id), [7; 32], &link, 0, false),
        ] {
            let found = Permit::read(token, &key, link, UnixMillis(issued.0 + age_ms));
            assert_eq!(found, expected.then_some(permit), "{token} {age_ms}");
        }
    }

    #[test]
    fn bodies_are_read_with_every_fault() {
        let read = |body: Value| NewReport::parse(&body);
        for empty in [json!({}), json!({"token": null, "text": null, "mail": null})] {
            assert_eq!(read(empty), Ok(None));
        }
        let report = read(json!({"token": "t", "text": " In a shop. ", "mail": "a@example.com"})).unwrap();
        let (token, text, mail) = ("t".to_owned(), "In a shop.".to_owned(), Some("a@example.com".to_owned()));
        assert_eq!(report, Some(NewReport { token, text, mail }));
        for (body, faults) in [
            (json!({"mail": "a@b"}), 2),
            (json!({"token": "t", "text": "x".repeat(MAX_REPORT + 1)}), 1),
            (json!({"token": "t".repeat(MAX_TOKEN + 1), "text": " \n", "mail": "x"}), 3),
            (json!({"token": 1, "text": 2, "mail": 3}), 3),
            (json!([]), 1),
        ] {
            assert_eq!(read(body.clone()).unwrap_err().len(), faults, "{body}");
        }
    }
}
