//! Who reported a scan, and so how much of it is believed.

use serde_json::{Map, Value};

use super::access::ActorKind;

/// The member of a stored scan that names its source.
pub const MEMBER: &str = "scanSource";

shared::words! {
    /// Who reported a scan.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Source {
        /// Our edge saw the request.
        Edge = "edge",
        /// An operator or a trusted application reported it.
        Server = "server",
        /// The holder of a key that anybody can get: an application's, its user's, a Thng's.
        Public = "public",
    } else ()
}

impl Source {
    /// The source of a scan that the holder of a key reports.
    #[must_use]
    pub const fn of_actor(kind: ActorKind) -> Self {
        match kind {
            ActorKind::Operator | ActorKind::ProjectOperator | ActorKind::TrustedApp => Self::Server,
            ActorKind::App | ActorKind::User | ActorKind::Thng => Self::Public,
        }
    }

    /// The source of a stored scan.
    ///
    /// For scans from before sources were stored it follows from other members: only edges write `context.entryUrl`.
    /// A scan that an application reported counts as public, because it is unknown which of its two keys it used.
    #[must_use]
    pub fn of_members(members: &Map<String, Value>) -> Self {
        let stored = members.get(MEMBER).and_then(Value::as_str).and_then(|text| text.parse().ok());
        stored.unwrap_or_else(|| {
            let by_edge = members.get("context").is_some_and(|context| context.get("entryUrl").is_some());
            let by_app = ["createdByApp", "user"].iter().any(|name| members.contains_key(*name));
            match (by_edge, by_app) {
                (true, _) => Self::Edge,
                (false, true) => Self::Public,
                (false, false) => Self::Server,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_source_of_an_old_scan_follows_from_its_members() {
        for (members, expected) in [
            (json!({}), Source::Server),
            (json!({"context": {"entryUrl": "https://tn.gg/X"}}), Source::Edge),
            (json!({"context": {"userAgent": "x"}, "user": "U"}), Source::Public),
            (json!({"createdByApp": "A"}), Source::Public),
            (json!({"createdByApp": "A", "scanSource": "server"}), Source::Server),
            (json!({"context": {"entryUrl": "x"}, "scanSource": "public"}), Source::Public),
            (json!({"scanSource": "nonsense"}), Source::Server),
        ] {
            assert_eq!(Source::of_members(members.as_object().unwrap()), expected, "{members}");
        }
        for source in Source::ALL {
            assert_eq!(source.as_str().parse(), Ok(source));
        }
    }
}
