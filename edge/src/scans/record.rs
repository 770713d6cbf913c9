//! The form of a scan on disk: small, and readable by the next version.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shared::{time::UnixMillis, wire::scan::ScanRecord};

use super::Scan;

/// First byte of every record; another one belongs to a later version.
const VERSION: u8 = 1;

/// Appends the record of a scan to `out`.
///
/// `version | time i64 | 4 or 6 | address | domain | short id | entry URL | user agent | referer`; each
/// text has a 16-bit length before it, numbers are little-endian.
pub(super) fn encode(scan: &Scan, out: &mut Vec<u8>) {
    out.push(VERSION);
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
    let (agent, referer) = (usize::from(scan.cuts.0), usize::from(scan.cuts.1));
    let texts = [
        Some(&*scan.served.key.domain),
        Some(&*scan.served.key.folded),
        scan.texts.get(..agent),
        scan.texts.get(agent..referer),
        scan.texts.get(referer..),
    ];
    for text in texts {
        let text = text.unwrap_or_default();
        // All texts are cut to a few hundred bytes before they come here.
        out.extend(u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
        out.extend(text.as_bytes());
    }
}

/// Reads a record; `None` when it is not one.
pub(super) fn decode(mut bytes: &[u8]) -> Option<ScanRecord> {
    let input = &mut bytes;
    if take::<1>(input)? != [VERSION] {
        return None;
    }
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
    input.is_empty().then_some(ScanRecord { at, domain, folded, ip, user_agent, referer, entry_url })
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
        redirect::{Redirect, RedirectKey, ResourceType},
        time::UnixMillis,
    };

    use super::*;
    use crate::cache::Served;

    /// A scan of one short id.
    pub(in crate::scans) fn scan(at: i64, entry_url: &str, agent: &str, referer: &str) -> Scan {
        let record = Redirect {
            domain: "tn.gg".parse().unwrap(),
            short_id: "ABC".parse().unwrap(),
            resource_type: ResourceType::Thng,
            platform_id: "0".repeat(24).parse().unwrap(),
            thng_id: None,
            product_id: None,
            target: "https://example.com/".into(),
            forward_query: false,
            created_at: UnixMillis(0),
            updated_at: UnixMillis(0),
        };
        let served = Served::new(&RedirectKey::new("tn.gg", "ABC"), Arc::new(record)).unwrap();
        let texts = format!("{entry_url}{agent}{referer}").into_boxed_str();
        let cuts = (entry_url.len() as u16, (entry_url.len() + agent.len()) as u16);
        Scan { at: UnixMillis(at), served: Arc::new(served), ip: [127, 0, 0, 1].into(), texts, cuts }
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
                prop_assert_eq!(&*read.entry_url, &*url);
                prop_assert_eq!(read.user_agent.as_deref().unwrap_or_default(), &*agent);
                prop_assert_eq!(read.referer.as_deref().unwrap_or_default(), &*referer);
                for cut in 0..bytes.len() {
                    prop_assert!(decode(&bytes[..cut]).is_none());
                }
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = decode(&bytes);
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
