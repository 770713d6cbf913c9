//! The form of a scan on disk: small, and readable by the next version.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU32,
};

use shared::{
    time::UnixMillis,
    wire::scan::{FiredRule, ScanRecord, cut},
};

use super::{Scan, degrade::Sum};

/// First byte of a record without a rule; an edge of the version before reads it too.
const PLAIN: u8 = 1;
/// First byte of a record with a rule; another one belongs to a later version.
const WITH_RULE: u8 = 2;
/// First byte of a sum of scans.
const SUM: u8 = 3;

/// Appends the record of a scan to `out`.
///
/// `version | time i64 | 4 or 6 | address | domain | short id | entry URL | user agent | referer`; each
/// text has a 16-bit length before it, numbers are little-endian. A rule that fired follows as
/// `application | index u16 | name | location`, where an empty text is none.
pub(super) fn encode(scan: &Scan, out: &mut Vec<u8>) {
    out.push(if scan.fired.is_some() { WITH_RULE } else { PLAIN });
    out.extend(scan.at.0.to_le_bytes());
    match scan.ip {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend(ip.octets());
        }
    }
    let mut from = 0;
    for to in scan.cuts.map(usize::from).into_iter().chain([scan.texts.len()]) {
        put(scan.texts.get(from..to).unwrap_or_default(), out);
        from = to;
    }
    if let Some(fired) = &scan.fired {
        put(fired.rule.application.as_ref().map_or("", |id| id.as_str()), out);
        out.extend(fired.rule.index.to_le_bytes());
        put(fired.rule.name.as_deref().unwrap_or_default(), out);
        // Printable ASCII: a target, and a query that was encoded.
        put(fired.location.to_str().unwrap_or_default(), out);
    }
}

/// Appends a sum: `version | time i64 | count u32 | domain | short id`.
pub(super) fn encode_sum(sum: &Sum, out: &mut Vec<u8>) {
    out.push(SUM);
    out.extend(sum.at.0.to_le_bytes());
    out.extend(sum.count.get().to_le_bytes());
    put(&sum.domain, out);
    put(&sum.folded, out);
}

fn decode_sum(mut bytes: &[u8]) -> Option<ScanRecord> {
    let input = &mut bytes;
    let at = UnixMillis(i64::from_le_bytes(take(input)?));
    let count = NonZeroU32::new(u32::from_le_bytes(take(input)?))?;
    let (domain, folded) = (text(input)?.into(), text(input)?.into());
    input.is_empty().then(|| ScanRecord {
        at,
        domain,
        folded,
        ip: Ipv4Addr::UNSPECIFIED.into(),
        user_agent: None,
        referer: None,
        entry_url: Box::default(),
        rule: None,
        count: Some(count),
    })
}

/// Appends a text of at most a few thousand bytes: all are bounded before they come here.
fn put(text: &str, out: &mut Vec<u8>) {
    let text = cut(text, usize::from(u16::MAX));
    out.extend(u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Reads a record; `None` when it is not one.
pub(super) fn decode(mut bytes: &[u8]) -> Option<ScanRecord> {
    let input = &mut bytes;
    let has_rule = match take::<1>(input)? {
        [PLAIN] => false,
        [WITH_RULE] => true,
        [SUM] => return decode_sum(input),
        _ => return None,
    };
    let at = UnixMillis(i64::from_le_bytes(take(input)?));
    let ip = match take::<1>(input)? {
        [4] => IpAddr::V4(Ipv4Addr::from(take::<4>(input)?)),
        [6] => IpAddr::V6(Ipv6Addr::from(take::<16>(input)?)),
        _ => return None,
    };
    let domain = text(input)?.into();
    let folded = text(input)?.into();
    let entry_url = text(input)?.into();
    let user_agent = Some(text(input)?).filter(|text| !text.is_empty()).map(Into::into);
    let referer = Some(text(input)?).filter(|text| !text.is_empty()).map(Into::into);
    let rule = if has_rule { Some(Box::new(rule(input)?)) } else { None };
    let count = None;
    input.is_empty().then_some(ScanRecord {
        at,
        domain,
        folded,
        ip,
        user_agent,
        referer,
        entry_url,
        rule,
        count,
    })
}

fn rule(input: &mut &[u8]) -> Option<FiredRule> {
    let application = match text(input)? {
        "" => None,
        id => Some(id.parse().ok()?),
    };
    let index = u16::from_le_bytes(take(input)?);
    let name = Some(text(input)?).filter(|name| !name.is_empty()).map(Into::into);
    let redirect_url = text(input)?.into();
    Some(FiredRule { application, index, name, redirect_url })
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*head)
}

fn text<'a>(input: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::from(u16::from_le_bytes(take(input)?));
    let (head, rest) = input.split_at_checked(length)?;
    *input = rest;
    std::str::from_utf8(head).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use shared::{
        geo::NoGeoIp,
        redirect::{Redirect, RedirectKey, ResourceType},
        rules::{AccountRules, MAX_NAME, Owner, Rule, RuleList},
        time::UnixMillis,
    };

    use super::*;
    use crate::{
        agents::Agents,
        cache::Served,
        rules::{self, Scene, Sources},
        scans::Fired,
    };

    const APPLICATION: &str = "U5Gq8sKVBfgRtKRaagBefgwk";
    const PROJECT: &str = "UMe8gsKVBfgRtKRaagBefgwk";

    /// A scan of one short id.
    pub(in crate::scans) fn scan(at: i64, entry_url: &str, agent: &str, referer: &str) -> Scan {
        let mut texts = String::new();
        let cuts = ["tn.gg", "ABC", entry_url, agent].map(|text| {
            texts.push_str(text);
            texts.len() as u16
        });
        texts.push_str(referer);
        Scan { at: UnixMillis(at), ip: [127, 0, 0, 1].into(), texts: texts.into(), cuts, fired: None }
    }

    /// A redirection of a project.
    fn served(project: &str) -> Served {
        let record = Redirect {
            domain: "tn.gg".parse().unwrap(),
            short_id: "ABC".parse().unwrap(),
            resource_type: ResourceType::Thng,
            platform_id: "0".repeat(24).parse().unwrap(),
            thng_id: None,
            product_id: None,
            target: "https://example.com/".into(),
            thng_name: None,
            standing: shared::standing::Standing::default(),
            projects: [project.parse().unwrap()].into(),
            forward_query: false,
            created_at: UnixMillis(0),
            updated_at: UnixMillis(0),
        };
        Served::new(&RedirectKey::new("tn.gg", "ABC"), Arc::new(record)).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(at: i64, v6: u128, url in ".{1,80}", agent in ".{0,80}", referer in ".{0,40}") {
            for ip in [IpAddr::V4([10, 0, 0, 1].into()), IpAddr::V6(v6.into())] {
                let scan = Scan { ip, ..scan(at, &url, &agent, &referer) };
                let mut bytes = Vec::new();
                encode(&scan, &mut bytes);
                let read = decode(&bytes).unwrap();
                prop_assert_eq!(read.at.0, at);
                prop_assert_eq!(read.ip, ip);
                prop_assert_eq!((&*read.domain, &*read.folded), ("tn.gg", "ABC"));
                prop_assert_eq!(&*read.entry_url, &*url);
                prop_assert_eq!(read.user_agent.as_deref().unwrap_or_default(), &*agent);
                prop_assert_eq!(read.referer.as_deref().unwrap_or_default(), &*referer);
                for cut in 0..bytes.len() {
                    prop_assert!(decode(&bytes[..cut]).is_none());
                }
            }
        }

        #[test]
        fn a_rule_is_written_and_read(named: bool, own: bool, name in ".{1,40}", path in "[a-z]{0,2000}") {
            let location = format!("https://example.com/{path}");
            let lists = vec![RuleList {
                owner: (!own).then(|| Owner { application: APPLICATION.parse().unwrap(), project: PROJECT.parse().unwrap() }),
                rules: vec![
                    Rule { name: None, condition: "hour<0".into(), redirect_url: None },
                    Rule {
                        name: named.then(|| cut(&name, MAX_NAME).into()),
                        condition: "hour>=0".into(),
                        redirect_url: Some(location.as_str().into()),
                    },
                ],
            }];
            let set = rules::read(&AccountRules::new(APPLICATION.parse().unwrap(), lists)).unwrap().unwrap();
            let mut scan = scan(1, "https://tn.gg/ABC", "", "");
            let served = served(PROJECT);
            let (headers, agents) = (http::HeaderMap::new(), Agents::new());
            let sources = Sources { agents: &agents, geo: &NoGeoIp };
            let scene = Scene::new(&served, &headers, scan.ip, scan.at, sources);
            let (rule, location) = set.decide(&scene).unwrap();
            scan.fired = Some(Box::new(Fired { rule, location: location.clone() }));
            let mut bytes = Vec::new();
            encode(&scan, &mut bytes);
            let fired = decode(&bytes).unwrap().rule.unwrap();
            prop_assert_eq!(fired.application, (!own).then(|| APPLICATION.parse().unwrap()));
            prop_assert_eq!((fired.index, &*fired.redirect_url), (1, location.to_str().unwrap()));
            prop_assert_eq!(fired.name, named.then(|| cut(&name, MAX_NAME).into()));
            for cut in 0..bytes.len() {
                prop_assert!(decode(&bytes[..cut]).is_none());
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_record_of_the_version_before_is_read() {
        let mut bytes = vec![1, 0xe8, 3, 0, 0, 0, 0, 0, 0, 4, 192, 0, 2, 7];
        for text in ["tn.gg", "ABC", "https://tn.gg/abc", "", "https://shop.example/"] {
            bytes.push(text.len() as u8);
            bytes.push(0);
            bytes.extend(text.as_bytes());
        }
        let record = decode(&bytes).unwrap();
        assert_eq!((record.at, record.ip), (UnixMillis(1_000), [192, 0, 2, 7].into()));
        assert_eq!((&*record.folded, &*record.entry_url), ("ABC", "https://tn.gg/abc"));
        assert_eq!((record.user_agent, record.rule), (None, None));
        assert_eq!(record.referer.as_deref(), Some("https://shop.example/"));
    }

    #[test]
    fn a_sum_is_written_and_read() {
        let sum = Sum {
            at: UnixMillis(60_000),
            domain: "tn.gg".into(),
            folded: "ABC".into(),
            count: 7.try_into().unwrap(),
        };
        let mut bytes = Vec::new();
        encode_sum(&sum, &mut bytes);
        let read = decode(&bytes).unwrap();
        assert_eq!((read.at, &*read.folded, read.count), (sum.at, "ABC", Some(sum.count)));
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_none());
        }
    }

    #[test]
    fn a_typical_record_is_under_200_bytes() {
        let agent =
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
        let mut bytes = Vec::new();
        encode(&scan(1_790_000_000_000, "https://tn.gg/K7Q2M4XA9R", agent, ""), &mut bytes);
        assert!(bytes.len() < 200, "{}", bytes.len());
    }
}
