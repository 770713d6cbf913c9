//! A scan as statistics count it, from what an edge reported or from a stored action.

use std::net::IpAddr;

use redirects::domain::redirection::Redirection;
use serde_json::Value;
use shared::{
    digital_link::Level,
    geo::Locality,
    id::{AccountId, ProductId, ProjectId},
    time::UnixMillis,
    wire::scan::ScanRecord,
};

use super::{context::Agent, labels, scan_source::Source};

/// Milliseconds in a day of UTC.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Most projects for which a scan is counted. A scan changes up to 16 rows by the hour and by the day in the view of the
/// account and again of each project: with 100 projects, as many as scopes may hold, it would be some 3,200.
pub const MAX_PROJECTS: usize = 8;

/// What is counted of a scan, or of a sum of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedScan {
    /// The account of the link.
    pub account: AccountId,
    /// When it was, by the edge's clock.
    pub at: UnixMillis,
    /// The projects that the link is scoped to: each once, and at most [`MAX_PROJECTS`], the first by their ids.
    pub projects: Vec<ProjectId>,
    /// The product.
    pub product: Option<ProductId>,
    /// Short domain, a slash and the short id.
    pub link: String,
    /// The GTIN, if a Digital Link was scanned.
    pub gtin: String,
    /// The lot of it that has links of its own.
    pub lot: String,
    /// Country, empty where it is unknown; the same holds for what follows.
    pub country: String,
    /// Region.
    pub region: String,
    /// City.
    pub city: String,
    /// Operating system.
    pub system: String,
    /// Language.
    pub language: String,
    /// Authenticity of the Thng by its last assessment when the scan is counted.
    pub verdict: &'static str,
    /// Whether a robot scanned.
    pub is_robot: bool,
    /// How many scans these are; more than one if it is a sum.
    pub count: u32,
    /// The device, of one scan of a person.
    pub device: Option<Device>,
}

/// A device on a day; nothing leads from one day to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// The day of UTC, counted from 1970.
    pub day: i32,
    /// A keyed hash of day, account, address and user agent.
    pub hash: i64,
}

/// Makes the hashes of devices.
#[derive(Clone)]
pub struct DeviceHasher([u8; 32]);

impl std::fmt::Debug for DeviceHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceHasher")
    }
}

impl DeviceHasher {
    /// From a secret that all replicas share.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(blake3::derive_key("waymark 2026-11 devices of scan statistics", secret))
    }

    /// The device of a scan.
    #[must_use]
    pub fn device(&self, account: AccountId, at: UnixMillis, ip: IpAddr, user_agent: &str) -> Device {
        let day = day(at.0);
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&day.to_be_bytes()).update(account.as_str().as_bytes());
        hasher.update(ip.to_string().as_bytes()).update(&[0]).update(user_agent.as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Device { day, hash: i64::from_be_bytes(bytes) }
    }
}

/// The day of a time, counted from 1970.
#[must_use]
pub fn day(at_ms: i64) -> i32 {
    let day = at_ms.div_euclid(DAY_MS);
    i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX })
}

impl CountedScan {
    /// A scan of a known link, as an edge reported it.
    #[must_use]
    pub fn of_record(
        devices: &DeviceHasher,
        record: &ScanRecord,
        item: &Redirection,
        agent: Agent<'_>,
        locality: &Locality,
    ) -> Self {
        let verdict = item.redirect.standing.verdict.map_or("", |verdict| verdict.authentication.as_str());
        let level = Level::of(item.redirect.short_id.as_str()).unwrap_or_default();
        let bare = Self {
            account: item.account,
            at: record.at,
            projects: bounded(item.scopes.project_ids().into_vec()),
            product: item.redirect.product_id,
            link: format!("{}/{}", record.domain, item.redirect.short_id.as_str()),
            gtin: level.gtin.to_owned(),
            lot: level.lot.unwrap_or_default(),
            country: String::new(),
            region: String::new(),
            city: String::new(),
            system: String::new(),
            language: String::new(),
            verdict: "",
            is_robot: false,
            count: 1,
            device: None,
        };
        // Nothing is known of the clients of a sum.
        if let Some(count) = record.count {
            return Self { count: count.get(), ..bare };
        }
        let user_agent = record.user_agent.as_deref().unwrap_or_default();
        let device = match record.client.as_deref() {
            None => Some(devices.device(item.account, record.at, record.ip, user_agent)),
            // By a key of the edge: it keeps the address to itself.
            Some(client) => client.device.map(|hash| Device { day: day(record.at.0), hash }),
        };
        Self {
            country: labels::country(locality.country_code.as_deref()),
            region: labels::name(locality.region.as_deref()),
            city: labels::name(locality.city.as_deref()),
            system: labels::name(agent.system),
            language: labels::language(record.language.as_deref()),
            verdict,
            is_robot: agent.bot,
            device: device.filter(|_| !agent.bot),
            ..bare
        }
    }

    /// A scan that is stored as an action; `None` unless an edge reported it. Its verdict is not known any more.
    #[must_use]
    pub fn of_action(
        devices: &DeviceHasher,
        account: AccountId,
        product: Option<ProductId>,
        at: UnixMillis,
        document: &Value,
    ) -> Option<Self> {
        let members = document.as_object()?;
        if Source::of_members(members) != Source::Edge {
            return None;
        }
        let text = |group: &str, name: &str| document[group][name].as_str();
        let of_context = |name: &str| text("context", name);
        let link = format!("{}/{}", text("customFields", "shortDomain")?, text("customFields", "shortId")?);
        let is_robot = document["customFields"]["bot"].as_bool().unwrap_or_default();
        let ip = of_context("ipAddress").and_then(|ip| ip.parse().ok()).filter(|_| !is_robot);
        let agent = of_context("userAgent").unwrap_or_default();
        let projects = document["scopes"]["projects"].as_array().into_iter().flatten();
        Some(Self {
            account,
            at,
            projects: bounded(projects.filter_map(|id| id.as_str()?.parse().ok()).collect()),
            product,
            link,
            gtin: text("customFields", "gtin").unwrap_or_default().to_owned(),
            lot: text("customFields", "lot").unwrap_or_default().to_owned(),
            country: labels::country(of_context("countryCode")),
            region: labels::name(of_context("region")),
            city: labels::name(of_context("city")),
            system: labels::name(of_context("operatingSystemName")),
            language: labels::language(of_context("language")),
            verdict: "",
            is_robot,
            count: 1,
            device: ip.map(|ip| devices.device(account, at, ip, agent)),
        })
    }
}

/// Scopes may name a project twice, and more of them than are counted.
fn bounded(mut projects: Vec<ProjectId>) -> Vec<ProjectId> {
    projects.sort_unstable();
    projects.dedup();
    projects.truncate(MAX_PROJECTS);
    projects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_another_one_on_the_next_day_and_in_another_account() {
        let (one, other) = (AccountId::new(1, [1; 16]), AccountId::new(1, [2; 16]));
        let (noon, ip) = (UnixMillis(DAY_MS / 2), IpAddr::from([192, 0, 2, 7]));
        let devices = DeviceHasher::new(&[7; 32]);
        let first = devices.device(one, noon, ip, "Phone/1");
        assert_eq!(first, devices.device(one, UnixMillis(DAY_MS - 1), ip, "Phone/1"));
        for another in [
            devices.device(one, UnixMillis(DAY_MS), ip, "Phone/1"),
            devices.device(other, noon, ip, "Phone/1"),
            devices.device(one, noon, [192, 0, 2, 8].into(), "Phone/1"),
            devices.device(one, noon, ip, "Phone/2"),
            DeviceHasher::new(&[8; 32]).device(one, noon, ip, "Phone/1"),
        ] {
            assert_ne!(first.hash, another.hash);
        }
    }

    #[test]
    fn only_scans_of_edges_are_counted_from_actions() {
        let devices = DeviceHasher::new(&[7; 32]);
        let read = |document: Value| {
            CountedScan::of_action(&devices, AccountId::new(1, [1; 16]), None, UnixMillis(5), &document)
        };
        let fields = serde_json::json!({"shortDomain": "tn.gg", "shortId": "A"});
        let context = serde_json::json!({"entryUrl": "https://tn.gg/A", "countryCode": "DE", "ipAddress": "192.0.2.7",
            "operatingSystemName": "iPhone", "language": "de-CH"});
        let scan = read(serde_json::json!({"customFields": fields, "context": context})).unwrap();
        assert_eq!(
            (scan.link.as_str(), scan.country.as_str(), scan.language.as_str()),
            ("tn.gg/A", "DE", "de")
        );
        assert!(scan.device.is_some() && !scan.is_robot);
        let by_server =
            serde_json::json!({"customFields": fields, "context": context, "scanSource": "server"});
        assert_eq!(read(by_server), None);
        assert_eq!(read(serde_json::json!({"scanSource": "edge"})), None, "no link");
    }

    #[test]
    fn projects_count_once_and_no_more_than_some() {
        let devices = DeviceHasher::new(&[7; 32]);
        let id = |n: u8| ProjectId::new(i64::from(n), [n; 16]);
        let read = |projects: Vec<ProjectId>| {
            let document = serde_json::json!({"customFields": {"shortDomain": "tn.gg", "shortId": "A"},
                "context": {"entryUrl": "https://tn.gg/A"}, "scopes": {"projects": projects}});
            let account = AccountId::new(1, [1; 16]);
            CountedScan::of_action(&devices, account, None, UnixMillis(5), &document).unwrap().projects
        };
        let mut all: Vec<ProjectId> = (0..100).map(id).collect();
        all.sort_unstable();
        assert_eq!(read(vec![all[1], all[0], all[1]]), all[..2]);
        assert_eq!(read(all.iter().rev().copied().collect()), all[..MAX_PROJECTS]);
    }
}
