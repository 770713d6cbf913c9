//! Files: their members, the signatures of their URLs, and the headers of their content.

use std::fmt::Write;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{id::FileId, time::UnixMillis};
use subtle::ConstantTimeEq;

use super::{
    body::{self, Purpose},
    common::{Common, Stamp},
    limits::MAX_NAME,
    members::Members,
    named::named,
};

// Spec gap: request size limits are not shown.
/// Largest content of a file: 1 GiB, some 40 million ids of a job.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

// Spec gap: how long signed URLs are good for is not shown.
/// How long an upload may be started with a URL; an upload that was started may take longer.
pub const UPLOAD_URL_MS: i64 = 60 * 60 * 1_000;

/// How long the content URL of a private file opens it without a key.
pub const CONTENT_URL_MS: i64 = 60 * 60 * 1_000;

/// The media type of a file without one.
pub const DEFAULT_TYPE: &str = "application/octet-stream";

/// Types that a browser may show; none of them can run anything. The rest is downloaded.
const SHOWN_TYPES: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "text/plain"];

/// The members of a file beside its name; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileDetails {
    /// What products and Thngs have too.
    #[serde(flatten)]
    pub common: Common,
    /// The media type of its content.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether reading the content takes a key or a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_access: Option<bool>,
}

/// The bytes of a file, by where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Their key in the blob store.
    pub blob: String,
    /// How many they are.
    pub size_bytes: u64,
    /// Identifies the content, without quotes.
    pub etag: String,
}

/// A file.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its id.
    pub id: FileId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// Everything else.
    pub details: FileDetails,
    /// Its bytes, once they were uploaded.
    pub content: Option<Content>,
}

/// The members of a create or update of a file; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Everything else.
    pub details: FileDetails,
}

impl File {
    /// Whether reading its content takes a key or a signature.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.details.private_access.unwrap_or_default()
    }

    /// The media type that its content is served as.
    #[must_use]
    pub fn media_type(&self) -> &str {
        self.details.kind.as_deref().unwrap_or(DEFAULT_TYPE)
    }

    /// The file after a change at `now`.
    #[must_use]
    pub fn apply(self, change: FileChange, now: UnixMillis) -> Self {
        let (old, new) = (self.details, change.details);
        let details = FileDetails {
            common: old.common.merge(new.common),
            kind: new.kind.or(old.kind),
            private_access: new.private_access.or(old.private_access),
        };
        Self { stamp: self.stamp.touch(now), name: change.name.unwrap_or(self.name), details, ..self }
    }
}

impl FileChange {
    /// Reads the body of `POST /files` and `PUT /files/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = body::name(&mut members, purpose);
        let kind = body::text(&mut members, "type", 1, MAX_NAME);
        if kind.as_deref().is_some_and(|kind| !is_media_type(kind)) {
            members.fault("type must be a media type such as text/csv.");
        }
        let details = FileDetails {
            common: body::common(&mut members),
            kind,
            private_access: members.boolean("privateAccess"),
        };
        members.finish(Some(Self { name, details }))
    }
}

/// Whether a text is a valid media type for a header: `type/subtype`, with or without parameters.
#[must_use]
pub fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&b))
    };
    let essence = essence(text);
    text.len() <= MAX_NAME
        && text.bytes().all(|b| (b' '..=b'~').contains(&b))
        && essence.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub))
}

fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// `Content-Disposition`: content that a browser could execute in our origin is downloaded, never shown.
#[must_use]
pub fn disposition(name: &str, media_type: &str) -> String {
    let essence = essence(media_type).to_ascii_lowercase();
    let way = if SHOWN_TYPES.contains(&essence.as_str()) { "inline" } else { "attachment" };
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    format!("{way}; filename*=UTF-8''{encoded}")
}

/// The operation that a signed URL allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purport {
    /// To write the content: `PUT`.
    Upload,
    /// To read it: `GET` and `HEAD`.
    Download,
}

/// The signature of a URL that allows one thing with one file until a time: 43 characters.
#[must_use]
pub fn sign(key: &[u8; 32], id: FileId, purport: Purport, expires: UnixMillis) -> String {
    URL_SAFE_NO_PAD.encode(mac(key, id, purport, expires))
}

/// Whether a signature is ours and its time has not passed.
#[must_use]
pub fn is_signed(
    key: &[u8; 32],
    id: FileId,
    purport: Purport,
    expires: UnixMillis,
    signature: &str,
    now: UnixMillis,
) -> bool {
    let given = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
    bool::from(mac(key, id, purport, expires).as_slice().ct_eq(&given)) && now <= expires
}

fn mac(key: &[u8; 32], id: FileId, purport: Purport, expires: UnixMillis) -> [u8; 32] {
    let method: &[u8] = match purport {
        Purport::Upload => b"PUT",
        Purport::Download => b"GET",
    };
    let mut hasher = blake3::Hasher::new_keyed(key);
    // Parts of fixed length, but for the last.
    hasher.update(&expires.0.to_be_bytes()).update(id.as_str().as_bytes()).update(method);
    *hasher.finalize().as_bytes()
}

/// The path below which a file's content is.
#[must_use]
pub fn content_path(id: FileId) -> String {
    format!("/files/{id}/content")
}

/// The file of a `contentUrl`: only its path counts, not the host or the signature.
#[must_use]
pub fn id_of_content_url(url: &str) -> Option<FileId> {
    let path = url.split(['?', '#']).next()?;
    let id = path.strip_suffix("/content")?.rsplit_once("/files/")?.1;
    id.parse().ok()
}

named! {
    File: FileId, FileDetails, "file", Files;
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_a_file_is_named() {
        for (body, faults) in [
            (json!({"name": "a.txt", "type": "text/plain", "privateAccess": true}), vec![]),
            (json!({"name": "a.txt", "type": "text/csv; charset=utf-8", "uploadUrl": 7}), vec![]),
            (json!({"name": "a"}), vec![]),
            (json!({}), vec!["name is required"]),
            (json!({"name": "a", "type": "text"}), vec!["type must be a media type"]),
            (json!({"name": "a", "type": "text/html\r\nX: y"}), vec!["type must be a media type"]),
            (json!({"name": "a", "type": ""}), vec!["type must not be empty"]),
            (json!({"name": 1, "privateAccess": "no", "tags": 2}), vec!["name", "tags", "privateAccess"]),
        ] {
            assert_faults(&body, |body| FileChange::parse(body, Purpose::Create), &faults);
        }
    }

    #[test]
    fn executable_content_is_never_shown_inline() {
        for (name, media_type, expected) in [
            ("a.txt", "text/plain", "inline; filename*=UTF-8''a.txt"),
            ("a.png", "Image/PNG; x=y", "inline; filename*=UTF-8''a.png"),
            ("a.html", "text/html", "attachment; filename*=UTF-8''a.html"),
            ("a.svg", "image/svg+xml", "attachment; filename*=UTF-8''a.svg"),
            ("a.xhtml", "application/xhtml+xml", "attachment; filename*=UTF-8''a.xhtml"),
            ("a.pdf", "application/pdf", "attachment; filename*=UTF-8''a.pdf"),
            ("ü \"x\";\r\n.csv", "text/csv", "attachment; filename*=UTF-8''%C3%BC%20%22x%22%3B%0D%0A.csv"),
        ] {
            assert_eq!(disposition(name, media_type), expected);
        }
    }

    #[test]
    fn a_signature_is_valid_for_one_file_one_method_and_a_limited_time() {
        let (key, other) = ([1; 32], [2; 32]);
        let (id, another) = (FileId::new(1, [1; 16]), FileId::new(1, [2; 16]));
        let (at, later) = (UnixMillis(1_000), UnixMillis(1_001));
        let text = sign(&key, id, Purport::Upload, at);
        let check =
            |key, id, purport, expires, text: &str, now| is_signed(key, id, purport, expires, text, now);
        assert!(check(&key, id, Purport::Upload, at, &text, at));
        assert!(!check(&key, id, Purport::Upload, at, &text, later), "late");
        assert!(!check(&key, id, Purport::Upload, later, &text, at), "prolonged");
        assert!(!check(&key, id, Purport::Download, at, &text, at), "for another method");
        assert!(!check(&key, another, Purport::Upload, at, &text, at), "for another file");
        assert!(!check(&other, id, Purport::Upload, at, &text, at), "with another key");
        for forged in ["", "x", &text[1..], &format!("{text}A"), &"A".repeat(43)] {
            assert!(!check(&key, id, Purport::Upload, at, forged, at), "{forged}");
        }
    }

    #[test]
    fn content_urls_name_files() {
        let id = "UKXAGyEf8SQ5eTDmVgGpHqAa";
        for (url, expected) in [
            (format!("https://api.example/files/{id}/content"), true),
            (format!("https://api.example/v2/files/{id}/content?expires=1&signature=x"), true),
            (format!("https://api.example/files/{id}"), false),
            (format!("https://api.example/files/{id}x/content"), false),
            ("https://api.example/content".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(id_of_content_url(&url).is_some(), expected, "{url}");
        }
    }
}
