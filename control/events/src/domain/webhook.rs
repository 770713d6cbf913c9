//! Webhooks: where events are sent, and how requests are signed.

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use shared::{
    id::{ProjectId, WebhookId},
    time::UnixMillis,
};

use super::{
    body::{Purpose, common, name},
    common::{Common, Stamp},
    egress::check_url,
    event_filter::{MAX_TYPES, Types},
    limits::MAX_URL,
    members::Members,
    named::named,
    subscription_filter::{SubscriptionFilter, SubscriptionFilterChange},
};

/// Secrets that sign at the same time: the present one, and rotated ones until they expire.
pub const MAX_SECRETS: usize = 5;

/// How long a rotated secret keeps signing, unless the request says otherwise.
pub const OVERLAP_MS: i64 = 24 * 60 * 60 * 1_000;

/// Longest time for that.
pub const MAX_OVERLAP_MS: i64 = 30 * OVERLAP_MS;

shared::words! {
    /// Whether a webhook is sent to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Status {
        /// Yes.
        Active = "active",
        /// No, and nothing is kept for it.
        Disabled = "disabled",
        /// Paused until it is activated: it failed for a day, answered 410, or was paused by request. Events are kept.
        Paused = "paused",
    } else ()
}

/// One secret: its value is derived from the webhook and this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretVersion {
    /// Its number; never used again.
    pub version: u32,
    /// Creation time.
    pub created_at: UnixMillis,
    /// When it ceases to sign; never as long as no other has taken its place.
    pub expires_at: Option<UnixMillis>,
}

/// The members of a webhook beside its name; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookDetails {
    /// What all resources have.
    #[serde(flatten)]
    pub common: Common,
    /// Where to.
    pub url: String,
    /// Which events it gets.
    #[serde(flatten)]
    pub subscription: SubscriptionFilter,
    /// Whether each event waits for the one before it.
    pub ordered: bool,
    /// The secrets, newest first.
    pub secrets: Vec<SecretVersion>,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// The project whose events it gets; without one, those of the account.
    pub project: Option<ProjectId>,
    /// Whether it is sent to.
    pub status: Status,
    /// Why it was paused, unless somebody asked for it.
    pub reason: Option<String>,
    /// How many events found its queue full.
    pub dropped: i64,
    /// Everything else.
    pub details: WebhookDetails,
}

/// The members of a create or update of a webhook; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebhookChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// What all resources have.
    pub common: Common,
    /// Where to; required on create.
    pub url: Option<String>,
    /// Which events it gets.
    pub subscription: SubscriptionFilterChange,
    /// Whether each event waits for the one before it.
    pub ordered: Option<bool>,
    /// Whether it is sent to.
    pub status: Option<Status>,
}

impl WebhookChange {
    /// Reads the body of `POST /webhooks` and `PUT /webhooks/:id`; `loopback` is the operator's setting.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose, loopback: bool) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = name(&mut members, purpose);
        let mut common = common(&mut members);
        // The visibility of a webhook follows from its project.
        common.scopes = None;
        let url = match members.text("url") {
            Some(text) => match check_url(text, loopback) {
                Ok(_) => Some(text.to_owned()),
                Err(fault) => {
                    members.fault(format!("url {fault}."));
                    None
                }
            },
            None => {
                if purpose == Purpose::Create && members.raw("url").is_none() {
                    members.fault("url is required.");
                }
                None
            }
        };
        let subscription = SubscriptionFilterChange::of(&mut members, Types::of_webhook);
        let ordered = members.boolean("ordered");
        let status = members.text("status").and_then(|text| {
            text.parse::<Status>()
                .map_err(|()| members.fault("status must be active, paused or disabled."))
                .ok()
        });
        members.finish(Some(Self { name, common, url, subscription, ordered, status }))
    }
}

/// The most types that a webhook names, and the longest URL, for the document of the API.
pub const LIMITS: (usize, usize) = (MAX_TYPES, MAX_URL);

impl Webhook {
    /// The webhook after a change at `now`.
    #[must_use]
    pub fn apply(self, change: WebhookChange, now: UnixMillis) -> Self {
        let old = self.details;
        let details = WebhookDetails {
            common: old.common.merge(change.common),
            url: change.url.unwrap_or(old.url),
            subscription: old.subscription.merge(change.subscription),
            ordered: change.ordered.unwrap_or(old.ordered),
            secrets: old.secrets,
        };
        let (status, reason) = match change.status {
            // A status that is sent back as it was read changes nothing.
            Some(Status::Paused) if self.status == Status::Paused => (self.status, self.reason),
            None => (self.status, self.reason),
            Some(status) => (status, None),
        };
        let name = change.name.unwrap_or(self.name);
        Self { stamp: self.stamp.touch(now), name, status, reason, details, ..self }
    }

    /// The secrets that sign at `now`, newest first.
    #[must_use]
    pub fn signing(&self, now: UnixMillis) -> Vec<SecretVersion> {
        let signs = |secret: &&SecretVersion| secret.expires_at.is_none_or(|end| end > now);
        self.details.secrets.iter().filter(signs).copied().collect()
    }

    /// The webhook with another secret in use; those before it sign until `until`.
    #[must_use]
    pub fn rotate(mut self, now: UnixMillis, until: UnixMillis) -> Self {
        let next = self.details.secrets.iter().map(|secret| secret.version).max().map_or(1, |last| last + 1);
        for secret in &mut self.details.secrets {
            secret.expires_at = Some(secret.expires_at.map_or(until, |end| end.min(until)));
        }
        self.details.secrets.insert(0, SecretVersion { version: next, created_at: now, expires_at: None });
        self.details.secrets.truncate(MAX_SECRETS);
        self.details.secrets.retain(|secret| secret.expires_at.is_none_or(|end| end > now));
        self.stamp = self.stamp.touch(now);
        self
    }
}

/// The bytes of a secret: derived, so that no table holds it and it can be shown again.
#[must_use]
pub fn secret(key: &[u8; 32], webhook: WebhookId, version: u32) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(webhook.as_str().as_bytes()).update(&version.to_be_bytes());
    *hasher.finalize().as_bytes()
}

/// A secret as receivers are given it.
#[must_use]
pub fn shown(secret: &[u8; 32]) -> String {
    format!("whsec_{}", BASE64_STANDARD.encode(secret))
}

/// The header `webhook-signature`: one signature for each secret.
#[must_use]
pub fn sign(secrets: &[[u8; 32]], id: &str, timestamp_s: i64, body: &[u8]) -> String {
    let signed = secrets.iter().filter_map(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
        mac.update(format!("{id}.{timestamp_s}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes())))
    });
    signed.collect::<Vec<_>>().join(" ")
}

named! {
    Webhook: WebhookId, WebhookDetails, "webhook", Webhooks of project;
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    fn webhook() -> Webhook {
        Webhook {
            id: WebhookId::new(1, [1; 16]),
            stamp: Stamp::new(UnixMillis(1)),
            name: "w".to_owned(),
            project: None,
            status: Status::Active,
            reason: None,
            dropped: 0,
            details: WebhookDetails::default(),
        }
    }

    #[test]
    fn a_message_is_signed_as_the_standard_says() {
        // The example of the reference implementation of Standard Webhooks.
        let secret: [u8; 24] =
            BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap().try_into().unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
        mac.update(b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}");
        let expected = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(BASE64_STANDARD.encode(mac.finalize().into_bytes()), expected);
        let (one, two) = ([1; 32], [2; 32]);
        let both = sign(&[one, two], "m", 5, b"{}");
        assert_eq!(both, format!("{} {}", sign(&[one], "m", 5, b"{}"), sign(&[two], "m", 5, b"{}")));
        for other in [sign(&[one], "n", 5, b"{}"), sign(&[one], "m", 6, b"{}"), sign(&[one], "m", 5, b"[]")] {
            assert_ne!(sign(&[one], "m", 5, b"{}"), other);
        }
    }

    #[test]
    fn secrets_are_of_one_webhook_and_version() {
        let (one, other) = (WebhookId::new(1, [1; 16]), WebhookId::new(1, [2; 16]));
        assert_eq!(secret(&[7; 32], one, 1), secret(&[7; 32], one, 1));
        for differs in [secret(&[7; 32], one, 2), secret(&[7; 32], other, 1), secret(&[8; 32], one, 1)] {
            assert_ne!(secret(&[7; 32], one, 1), differs);
        }
        assert!(shown(&[0; 32]).starts_with("whsec_AAAA"));
    }

    #[test]
    fn a_rotated_secret_signs_until_it_expires() {
        let versions = |webhook: &Webhook, now: i64| -> Vec<u32> {
            webhook.signing(UnixMillis(now)).iter().map(|secret| secret.version).collect()
        };
        let first = webhook().rotate(UnixMillis(0), UnixMillis(0));
        assert_eq!(versions(&first, 1_000_000), [1]);
        let second = first.rotate(UnixMillis(10), UnixMillis(100));
        assert_eq!((versions(&second, 99), versions(&second, 100)), (vec![2, 1], vec![2]));
        let third = second.rotate(UnixMillis(20), UnixMillis(500));
        assert_eq!((versions(&third, 50), versions(&third, 200)), (vec![3, 2, 1], vec![3, 2]));
        let at_once = third.rotate(UnixMillis(30), UnixMillis(30));
        assert_eq!(versions(&at_once, 31), [4]);
    }

    #[test]
    fn each_fault_is_named() {
        let url = "https://example.com/hook";
        for (body, purpose, faults) in [
            (json!({"name": "x", "url": url}), Purpose::Create, vec![]),
            (
                json!({"name": "x", "url": url, "match": "type=scans", "types": ["job"]}),
                Purpose::Create,
                vec![],
            ),
            (json!({}), Purpose::Create, vec!["name is required", "url is required"]),
            (json!({}), Purpose::Update, vec![]),
            (json!({"url": "http://example.com"}), Purpose::Update, vec!["url must begin with https://"]),
            (json!({"url": 5, "ordered": 1}), Purpose::Update, vec!["url", "ordered"]),
            (json!({"types": ["scans"]}), Purpose::Update, vec!["types: \"scans\" is no type"]),
            (json!({"types": "job"}), Purpose::Update, vec!["types"]),
            (json!({"match": "color=red"}), Purpose::Update, vec!["match: \"color\" is not"]),
            (json!({"status": "paused"}), Purpose::Update, vec![]),
            (json!({"status": "gone"}), Purpose::Update, vec!["status must be active, paused or disabled"]),
            (json!([]), Purpose::Update, vec!["must be a JSON object"]),
        ] {
            assert_faults(&body, |body| WebhookChange::parse(body, purpose, false), &faults);
        }
        let paused = Webhook {
            status: Status::Paused,
            reason: Some("r".to_owned()),
            details: WebhookDetails {
                subscription: SubscriptionFilter { types: Vec::new(), condition: Some("type=a".to_owned()) },
                ..WebhookDetails::default()
            },
            ..webhook()
        };
        let kept = paused.clone().apply(WebhookChange::default(), UnixMillis(5));
        assert_eq!(
            (kept.status, kept.details.subscription.condition.as_deref()),
            (Status::Paused, Some("type=a"))
        );
        let pause = WebhookChange { status: Some(Status::Paused), ..WebhookChange::default() };
        let again = paused.clone().apply(pause.clone(), UnixMillis(5));
        assert_eq!((again.status, again.reason.as_deref()), (Status::Paused, Some("r")));
        let by_hand = webhook().apply(pause, UnixMillis(5));
        assert_eq!((by_hand.status, by_hand.reason), (Status::Paused, None));
        let change = WebhookChange {
            status: Some(Status::Active),
            subscription: SubscriptionFilterChange { types: None, condition: Some(String::new()) },
            ..WebhookChange::default()
        };
        let resumed = paused.apply(change, UnixMillis(5));
        assert_eq!(
            (resumed.status, resumed.reason, resumed.details.subscription),
            (Status::Active, None, SubscriptionFilter::default())
        );
    }
}
