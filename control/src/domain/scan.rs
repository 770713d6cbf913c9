//! What a scan becomes: the `implicitScans` action with its context (decisions 5, "A redirect is recorded").

use serde_json::{Value, json};
use shared::{geo::Locality, id::ActionId, wire::scan::ScanRecord};

/// Type of the action that a redirect is recorded as.
pub const IMPLICIT_SCANS: &str = "implicitScans";

/// What a user agent tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Agent<'a> {
    /// Name of the browser or program.
    pub name: Option<&'a str>,
    /// Name of the operating system.
    pub system: Option<&'a str>,
    /// Whether it is a robot: recorded and flagged, never counted in `hits`.
    pub bot: bool,
}

/// Words in the user agents of robots, previews and health checks that the parser does not know.
const BOT_WORDS: &[&str] = &[
    "bot",
    "crawl",
    "spider",
    "slurp",
    "preview",
    "facebookexternalhit",
    "facebookcatalog",
    "whatsapp",
    "telegram",
    "skypeuripreview",
    "embedly",
    "quora link",
    "pinterest/",
    "vkshare",
    "w3c_validator",
    "headlesschrome",
    "lighthouse",
    "pingdom",
    "uptime",
    "monitor",
    "statuscake",
    "site24x7",
    "datadog",
    "curl/",
    "wget/",
    "python-requests",
    "python-urllib",
    "python-httpx",
    "aiohttp",
    "go-http-client",
    "java/",
    "okhttp-monitor",
    "libwww-perl",
    "apache-httpclient",
    "scrapy",
    "nmap",
    "masscan",
    "zgrab",
    "censys",
    "nuclei",
    "nikto",
];

// Spec gap: what counts as a robot is not shown.
/// Reads a user agent; without one it is a program that hides, and counts as a bot.
#[must_use]
pub fn read_agent<'a>(parser: &'a woothee::parser::Parser, user_agent: Option<&'a str>) -> Agent<'a> {
    let Some(user_agent) = user_agent else { return Agent { bot: true, ..Agent::default() } };
    let lower = user_agent.to_ascii_lowercase();
    let by_word = BOT_WORDS.iter().any(|word| lower.contains(word));
    match parser.parse(user_agent) {
        None => Agent { bot: by_word, ..Agent::default() },
        Some(found) => {
            let known = |text: &'a str| Some(text).filter(|text| *text != "UNKNOWN");
            Agent {
                name: known(found.name),
                system: known(found.os),
                bot: by_word || found.category == "crawler",
            }
        }
    }
}

/// The id of the action of one scan: ordered by time, unguessable, and the same on a repeat.
#[must_use]
pub fn action_id(key: &[u8; 32], edge: &str, boot: u64, seq: u64, record: &ScanRecord) -> ActionId {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(edge.as_bytes()).update(&[0]).update(&boot.to_be_bytes()).update(&seq.to_be_bytes());
    let mut random = [0; 16];
    random.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    ActionId::new(record.at.0, random)
}

/// The members of the action that no query goes by.
#[must_use]
pub fn document(record: &ScanRecord, short_id: &str, agent: Agent<'_>, place: &Locality) -> Value {
    let mut context = serde_json::Map::new();
    let mut put = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            context.insert(name.to_owned(), Value::String(value.to_owned()));
        }
    };
    put("ipAddress", Some(&record.ip.to_string()));
    put("city", place.city.as_deref());
    put("region", place.region.as_deref());
    put("countryCode", place.country_code.as_deref());
    put("timeZone", place.time_zone.as_deref());
    put("userAgent", record.user_agent.as_deref());
    put("userAgentName", agent.name);
    put("operatingSystemName", agent.system);
    put("referer", record.referer.as_deref());
    put("entryUrl", Some(&record.entry_url));
    let mut custom = json!({"shortDomain": &*record.domain, "shortId": short_id});
    if agent.bot {
        custom["bot"] = Value::Bool(true);
    }
    let mut document = json!({
        "customFields": custom,
        "tags": [],
        "context": context,
        "locationSource": if place.position.is_some() { "geoIp" } else { "unknown" },
    });
    if let Some((latitude, longitude)) = place.position {
        document["location"] = json!({
            "latitude": latitude,
            "longitude": longitude,
            "position": {"type": "Point", "coordinates": [longitude, latitude]},
        });
    }
    document
}

#[cfg(test)]
mod tests {
    use shared::time::UnixMillis;

    use super::*;

    fn record() -> ScanRecord {
        ScanRecord {
            at: UnixMillis(1_700_000_000_000),
            domain: "tn.gg".into(),
            folded: "ABC".into(),
            ip: "192.0.2.7".parse().unwrap(),
            user_agent: Some("Mozilla/5.0".into()),
            referer: None,
            entry_url: "https://tn.gg/abc".into(),
        }
    }

    #[test]
    fn robots_are_told_from_people() {
        let parser = woothee::parser::Parser::new();
        for (agent, bot) in [
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
                false,
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
                false,
            ),
            ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0", false),
            ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", true),
            ("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", true),
            ("WhatsApp/2.23.20.0", true),
            ("Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", true),
            (
                "Mozilla/5.0 (Macintosh) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
                true,
            ),
            ("curl/8.5.0", true),
            ("python-requests/2.32.0", true),
        ] {
            assert_eq!(read_agent(&parser, Some(agent)).bot, bot, "{agent}");
        }
        assert!(read_agent(&parser, None).bot);
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";
        let agent = read_agent(&parser, Some(phone));
        assert_eq!((agent.name, agent.system), (Some("Safari"), Some("iPhone")));
    }

    #[test]
    fn ids_repeat_and_follow_time() {
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
    fn the_document_has_what_is_known() {
        let bare = document(&record(), "abc", Agent::default(), &Locality::default());
        assert_eq!(bare["locationSource"], "unknown");
        assert_eq!(bare["context"]["entryUrl"], "https://tn.gg/abc");
        assert_eq!(bare["context"].get("city"), None);
        assert_eq!(bare["customFields"], json!({"shortDomain": "tn.gg", "shortId": "abc"}));
        let place =
            Locality { position: Some((52.5, 13.4)), country_code: Some("DE".into()), ..Locality::default() };
        let full = document(&record(), "abc", Agent { bot: true, ..Agent::default() }, &place);
        assert_eq!(full["locationSource"], "geoIp");
        assert_eq!(full["location"]["position"]["coordinates"], json!([13.4, 52.5]));
        assert_eq!(full["customFields"]["bot"], true);
    }
}
