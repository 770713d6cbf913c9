//! Converts a scan into an `implicitScans` action with its context.

use serde_json::{Value, json};
use shared::{
    digital_link::Level,
    geo::Locality,
    id::ActionId,
    wire::scan::{FiredRule, MAX_ENTRY_URL, MAX_LANGUAGE, MAX_LINK_TYPE, ScanRecord, cut, is_language},
};

use super::{
    context::{self, Agent, Origin},
    scan_source::Source,
    scopes::Scopes,
};

/// Bytes of the longest serial.
const MAX_SERIAL: usize = 20;

/// Type of the action that a redirect is recorded as.
pub const IMPLICIT_SCANS: &str = "implicitScans";

/// The id of the action of one scan: ordered by time, unguessable, and the same on a repeat.
#[must_use]
pub fn action_id(key: &[u8; 32], edge: &str, boot: u64, seq: u64, record: &ScanRecord) -> ActionId {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(edge.as_bytes()).update(&[0]).update(&boot.to_be_bytes()).update(&seq.to_be_bytes());
    let mut random = [0; 16];
    random.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    ActionId::new(record.at.0, random)
}

/// The members of the action that are not queried.
#[must_use]
pub fn document(
    record: &ScanRecord,
    short_id: &str,
    scopes: &Scopes,
    agent: Agent<'_>,
    locality: &Locality,
) -> Value {
    let origin = Origin {
        // The edge kept the address of such a client to itself.
        ip: Some(record.ip).filter(|_| record.client.is_none()),
        user_agent: record.user_agent.as_deref(),
        referer: record.referer.as_deref(),
        language: record.language.as_deref().filter(|tag| tag.len() <= MAX_LANGUAGE && is_language(tag)),
    };
    let mut context = context::context(origin, agent, locality);
    context.insert("entryUrl".to_owned(), Value::String(record.entry_url.to_string()));
    let mut custom = json!({"shortDomain": &*record.domain, "shortId": short_id});
    if agent.bot {
        custom["bot"] = Value::Bool(true);
    }
    let serial = read_digital_link(record, short_id, &mut custom);
    let mut document = json!({
        "customFields": custom,
        "tags": [],
        "context": context,
        "locationSource": "unknown",
        "reactions": [],
        "scanSource": Source::Edge.as_str(),
    });
    if let Some(serial) = serial {
        document["serial"] = serial.into();
    }
    if let Some(fired) = &record.rule {
        document["reactions"] = json!([reaction(fired)]);
    }
    if let Some(location) = context::location(locality) {
        document["locationSource"] = "geoIp".into();
        document["location"] = Value::Object(location);
    }
    if !scopes.projects.is_empty() || !scopes.users.is_empty() {
        document["scopes"] = json!(scopes);
    }
    document
}

/// Adds what a Digital Link said to the custom fields of its scan, and returns the serial.
///
/// What anybody may make up with each scan is no custom field, because lists have an index of these: a lot or variant is one
/// where the product has links for it. A serial follows from the entry URL, unless that is cut.
fn read_digital_link(record: &ScanRecord, short_id: &str, custom: &mut Value) -> Option<String> {
    let link = record.digital_link.as_deref()?;
    let level = Level::of(short_id)?;
    let link_type = link.link_type.as_deref().map(|text| cut(text, MAX_LINK_TYPE).to_owned());
    let texts = [
        ("gtin", Some(level.gtin.to_owned())),
        ("variant", level.variant),
        ("lot", level.lot),
        ("linkType", link_type),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            custom[name] = text.into();
        }
    }
    if let Some(known) = link.known {
        custom["known"] = known.into();
    }
    let is_whole = record.entry_url.len() < MAX_ENTRY_URL;
    link.serial.as_deref().filter(|_| is_whole).map(|serial| cut(serial, MAX_SERIAL).to_owned())
}

// Spec gap: the members of a reaction are not shown beside its type.
/// The reaction of a redirect by a rule: which rule fired, and where it led.
fn reaction(fired: &FiredRule) -> Value {
    let mut rule = json!({"index": fired.index});
    if let Some(name) = &fired.name {
        rule["name"] = json!(name);
    }
    if let Some(application) = &fired.application {
        rule["application"] = json!(application);
    }
    json!({"type": "redirection", "rule": rule, "redirectUrl": fired.redirect_url})
}

#[cfg(test)]
mod tests {
    use shared::{time::UnixMillis, wire::scan::ScannedLink};

    use super::*;

    fn record() -> ScanRecord {
        ScanRecord {
            at: UnixMillis(1_700_000_000_000),
            domain: "tn.gg".into(),
            folded: "ABC".into(),
            ip: "192.0.2.7".parse().unwrap(),
            user_agent: Some("Mozilla/5.0".into()),
            referer: None,
            language: None,
            entry_url: "https://tn.gg/abc".into(),
            rule: None,
            count: None,
            client: None,
            digital_link: None,
        }
    }

    #[test]
    fn ids_are_repeatable_and_sorted_by_time() {
        let record = record();
        let id = action_id(&[1; 32], "edge-1", 3, 9, &record);
        assert_eq!(id, action_id(&[1; 32], "edge-1", 3, 9, &record));
        for other in [
            action_id(&[2; 32], "edge-1", 3, 9, &record),
            action_id(&[1; 32], "edge-2", 3, 9, &record),
            action_id(&[1; 32], "edge-1", 4, 9, &record),
            action_id(&[1; 32], "edge-1", 3, 10, &record),
        ] {
            assert_ne!(id, other);
            assert_eq!(id.as_str()[..8], other.as_str()[..8]);
        }
    }

    #[test]
    fn the_document_has_all_known_members() {
        let bare = document(&record(), "abc", &Scopes::default(), Agent::default(), &Locality::default());
        assert_eq!(bare["locationSource"], "unknown");
        assert_eq!(bare["context"]["entryUrl"], "https://tn.gg/abc");
        assert_eq!((bare["context"].get("city"), bare["context"].get("language")), (None, None));
        let spoken = ScanRecord { language: Some("de-CH".into()), ..record() };
        let spoken = document(&spoken, "abc", &Scopes::default(), Agent::default(), &Locality::default());
        assert_eq!(spoken["context"]["language"], "de-CH");
        assert_eq!(bare["customFields"], json!({"shortDomain": "tn.gg", "shortId": "abc"}));
        let place =
            Locality { position: Some((52.5, 13.4)), country_code: Some("DE".into()), ..Locality::default() };
        let full =
            document(&record(), "abc", &Scopes::default(), Agent { bot: true, ..Agent::default() }, &place);
        assert_eq!(full["locationSource"], "geoIp");
        assert_eq!(full["location"]["position"]["coordinates"], json!([13.4, 52.5]));
        assert_eq!(full["customFields"]["bot"], true);
        assert_eq!(full["reactions"], json!([]));
    }

    #[test]
    fn what_a_digital_link_said_is_kept() {
        let link = ScannedLink {
            gtin: "09521234543213".into(),
            lot: Some("ANY".into()),
            serial: Some("S1".into()),
            link_type: Some("gs1:pip".into()),
            known: Some(false),
            ..ScannedLink::default()
        };
        let record = ScanRecord { digital_link: Some(Box::new(link)), ..record() };
        let of = |short_id| {
            document(&record, short_id, &Scopes::default(), Agent::default(), &Locality::default())
        };
        let (product, lot) = (of("01/09521234543213"), of("01/09521234543213/10/L%2F1"));
        assert_eq!(
            product["customFields"],
            json!({"shortDomain": "tn.gg", "shortId": "01/09521234543213", "gtin": "09521234543213",
                "linkType": "gs1:pip", "known": false})
        );
        assert_eq!((&product["serial"], &lot["customFields"]["lot"]), (&json!("S1"), &json!("L/1")));
        assert_eq!(of("abc").get("serial"), None, "no Digital Link");
    }

    #[test]
    fn the_rule_that_fired_is_a_reaction() {
        let redirect_url: Box<str> = "https://example.com/de".into();
        let rule = FiredRule { application: None, index: 3, name: None, redirect_url };
        let reactions = |rule| {
            let record = ScanRecord { rule: Some(Box::new(rule)), ..record() };
            let (scopes, agent, locality) = (Scopes::default(), Agent::default(), Locality::default());
            document(&record, "abc", &scopes, agent, &locality)["reactions"].take()
        };
        let url = "https://example.com/de";
        assert_eq!(
            reactions(rule.clone()),
            json!([{"type": "redirection", "rule": {"index": 3}, "redirectUrl": url}])
        );
        let id = "U5Gq8sKVBfgRtKRaagBefgwk";
        let named = FiredRule { application: id.parse().ok(), name: Some("Germany".into()), ..rule };
        let expected = json!({"index": 3, "name": "Germany", "application": id});
        assert_eq!(reactions(named)[0]["rule"], expected);
    }
}
