//! Messages of the change stream from control to edge, their acknowledgements, and the answer to a single read.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::certificates::{Challenge, DomainCertificate};
use crate::{
    redirect::{Redirect, RedirectKey},
    rules::AccountRules,
    short_url::ShortDomain,
    withheld::Withheld,
};

/// A revision: gapless, in commit order, 0 before the first change.
pub type Rev = u64;

/// A random id that changes whenever history may have been cut.
pub type Epoch = Arc<str>;

/// Time between two heartbeats in milliseconds, sent always, after all events up to `head`.
pub const HEARTBEAT_MS: u64 = 250;

/// First message of an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`super::PROTOCOL`] of the edge.
    pub proto: u32,
    /// Name of the edge, unique in the fleet.
    pub edge_id: Arc<str>,
    /// Region of the edge.
    pub region: Arc<str>,
    /// Build of the edge, for people.
    pub build: Arc<str>,
    /// The epoch the edge is in, if it ever was in one.
    pub epoch: Option<Epoch>,
    /// The revision up to which the edge has applied everything.
    pub applied: Rev,
    /// [`super::contents::digests`] of the pages and files of domains that the edge holds; empty from an older edge, which
    /// is told all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<u64>,
    /// [`super::contents::digests_of`] what the edge holds of certificates; `None` where it takes none, and from an older edge: then
    /// neither the welcome nor events have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates: Option<Vec<u64>>,
}

/// The change of one revision.
///
/// Parsing never fails on a single change, so that one of a newer release is rejected alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// A redirection was created or changed; or deleted, without a value.
    Redirect(RedirectKey, Option<Arc<Redirect>>),
    /// A short domain was added or changed.
    Domain(ShortDomain),
    /// The rules of an account were changed; without a list they are gone.
    Rules(Arc<AccountRules>),
    /// Something is withheld from now on (`true`), or no longer.
    Withhold(Withheld, bool),
    /// The certificate of a host is new; or removed, without a value.
    Certificate(Arc<str>, Option<Arc<DomainCertificate>>),
    /// A certificate authority is about to check a host.
    Challenge(Arc<Challenge>),
    /// Something that this release cannot read, with the reason; it is never written.
    #[serde(skip)]
    Unreadable(String),
}

impl<'de> Deserialize<'de> for Change {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        enum Readable {
            Redirect(RedirectKey, Option<Arc<Redirect>>),
            Domain(ShortDomain),
            Rules(Arc<AccountRules>),
            Withhold(Withheld, bool),
            Certificate(Arc<str>, Option<Arc<DomainCertificate>>),
            Challenge(Arc<Challenge>),
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(match serde_json::from_str(text.get()) {
            Ok(Readable::Redirect(key, value)) => Self::Redirect(key, value),
            Ok(Readable::Domain(domain)) => Self::Domain(domain),
            Ok(Readable::Rules(rules)) => Self::Rules(rules),
            Ok(Readable::Withhold(what, is_withheld)) => Self::Withhold(what, is_withheld),
            Ok(Readable::Certificate(host, certificate)) => Self::Certificate(host, certificate),
            Ok(Readable::Challenge(challenge)) => Self::Challenge(challenge),
            Err(error) => Self::Unreadable(error.to_string()),
        })
    }
}

/// One revision of the change log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The revision.
    pub rev: Rev,
    /// Its change.
    pub change: Change,
}

/// A run of events without a gap: applied only onto `prev`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// The revision before the first item.
    pub prev: Rev,
    /// The revisions in order.
    pub items: Vec<Event>,
    /// The revision of the last item.
    pub last: Rev,
}

/// How the stream continues from where the edge is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Start {
    /// Events after `applied` follow.
    Resume,
    /// History was cut: everything known from before `at_rev` is stale; events after it follow.
    Snapshot {
        /// The revision the edge continues from.
        at_rev: Rev,
    },
}

/// Answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The epoch of control.
    pub epoch: Epoch,
    /// The newest revision.
    pub head: Rev,
    /// Revisions up to this one are no longer in the log.
    pub compacted: Rev,
    /// How the stream continues.
    pub start: Start,
    /// Every short domain, as of some revision at or after the start.
    pub domains: Vec<ShortDomain>,
    /// The rules of every account that has some, exactly as of the `at_rev` of a snapshot; empty on a resume,
    /// where the edge has those of `applied` and the events bring the rest.
    #[serde(default)]
    pub rules: Vec<Arc<AccountRules>>,
    /// Everything that is withheld, as of some revision at or after the start; `None` from an older control, of which
    /// the edge learns nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Vec<Withheld>>,
    /// Groups of domains that the edge holds the pages and files of ([`super::contents::group_of`]): these are left out of
    /// `domains`, and stay as they are. Empty from an older control, which sends all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<u8>,
    /// Groups of hosts whose certificates the edge holds ([`super::contents::group_of_host`]): these are left out, and stay as they
    /// are. `None` from an older control, of which the edge learns nothing about certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_certificates: Option<Vec<u8>>,
    /// All other certificates of short domains, as of some revision at or after the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<Arc<DomainCertificate>>,
    /// What authorities are about to check, as of some revision at or after the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub challenges: Vec<Arc<Challenge>>,
}

/// Messages from control to an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToEdge {
    /// First message of a connection.
    Welcome(Welcome),
    /// Changes.
    Events(Arc<Events>),
    /// Life sign, after all events up to `head`.
    Heartbeat {
        /// Counts up from 1 within a connection.
        seq: u64,
        /// The newest revision; the edge has been sent all of it.
        head: Rev,
    },
    /// The edge must reconnect.
    Goaway {
        /// Why, for the log.
        reason: String,
        /// How long to wait, before jitter, in milliseconds.
        retry_after_ms: u64,
    },
}

/// A revision that an edge refused; the old value stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// The revision.
    pub rev: Rev,
    /// Why, for the alarm.
    pub reason: String,
}

/// Messages from an edge to control after [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToControl {
    /// First message of a connection over the network.
    Hello(Hello),
    /// Everything up to `applied` is live on the edge, except rejected revisions. Renews the lease.
    Ack {
        /// The newest revision applied.
        applied: Rev,
        /// Revisions refused since the last ack.
        rejected: Vec<Rejected>,
    },
    /// The edge saw a gap and wants the stream from `applied` on.
    Resync {
        /// The newest revision applied.
        applied: Rev,
        /// Why, for the log.
        reason: String,
    },
}

/// One atomic read of a key together with the watermark of the view it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// The epoch of the view.
    pub epoch: Epoch,
    /// Whether the view holds every key.
    pub complete: bool,
    /// The revision up to which the view has everything.
    pub watermark: Rev,
    /// The value and the revision that wrote it, if the key exists.
    pub value: Option<(Rev, Arc<Redirect>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unreadable_change_leaves_the_others_readable() {
        let text = r#"{"prev":1,"items":[{"rev":2,"change":{"hologram":[1]}},
            {"rev":3,"change":{"redirect":[{"domain":"tn.gg","folded":"A"},null]}}],"last":3}"#;
        let events: Events = serde_json::from_str(text).unwrap();
        assert!(
            matches!(&events.items[0].change, Change::Unreadable(why) if why.contains("hologram")),
            "{events:?}"
        );
        assert_eq!(events.items[1].change, Change::Redirect(RedirectKey::new("tn.gg", "A"), None));
        let value = serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(serde_json::from_value::<Events>(value).unwrap(), events, "out of the database alike");
    }

    #[test]
    fn messages_round_trip() {
        let certificate = DomainCertificate {
            host: "go.example".into(),
            chain: "PEM".into(),
            key: "SECRET".into(),
            not_after: 9,
        };
        assert!(!format!("{certificate:?}").contains("SECRET"));
        let challenge =
            Challenge { host: "go.example".into(), token: "T".into(), key_authorization: "T.K".into() };
        let changes = [
            Change::Redirect(RedirectKey::new("tn.gg", "ABC"), None),
            Change::Certificate("go.example".into(), Some(Arc::new(certificate))),
            Change::Certificate("go.example".into(), None),
            Change::Challenge(Arc::new(challenge)),
        ];
        let items: Vec<Event> = (5..).zip(changes).map(|(rev, change)| Event { rev, change }).collect();
        let message = ToEdge::Events(Arc::new(Events { prev: 4, items, last: 8 }));
        let text = serde_json::to_string(&message).unwrap();
        assert!(text.contains(r#""keyAuthorization":"T.K""#), "{text}");
        assert_eq!(serde_json::from_str::<ToEdge>(&text).unwrap(), message);
    }
}
