//! Encodes scans, and sums of scans, in their format on disk.

use shared::wire::spooled::{NewRecord, NewRule, write_sum};

use super::{Scan, degrade::Sum};

/// Appends the record of a scan to `out`.
pub(super) fn write(scan: &Scan, out: &mut Vec<u8>) {
    let mut texts = [""; 6];
    let (mut from, ends) = (0, scan.cuts.map(usize::from).into_iter().chain([scan.texts.len()]));
    for (text, to) in texts.iter_mut().zip(ends) {
        *text = scan.texts.get(from..to).unwrap_or_default();
        from = to;
    }
    let rule = scan.fired.as_ref().map(|fired| NewRule {
        application: fired.rule.application.as_ref().map_or("", |id| id.as_str()),
        index: fired.rule.index,
        name: fired.rule.name.as_deref().unwrap_or_default(),
        // Printable ASCII: a target, and a query that was encoded.
        location: fired.location.to_str().unwrap_or_default(),
    });
    let [domain, folded, entry_url, agent, referer, language] = texts;
    let texts = [domain, folded, entry_url, agent, referer];
    NewRecord { at: scan.at, ip: scan.ip, texts, language, rule }.write(out);
}

/// Appends a sum to `out`.
pub(super) fn put_sum(sum: &Sum, out: &mut Vec<u8>) {
    write_sum(sum.at, sum.count, [&sum.domain, &sum.folded], out);
}

#[cfg(test)]
pub(super) mod tests {
    use std::{net::IpAddr, sync::Arc};

    use proptest::prelude::*;
    use shared::{
        rules::MAX_NAME,
        time::UnixMillis,
        wire::{
            scan::{ScanRecord, cut},
            spooled::{decode, read_all, split_frame},
        },
    };

    use super::{
        super::{Fired, RuleName},
        *,
    };

    const APPLICATION: &str = "U5Gq8sKVBfgRtKRaagBefgwk";

    /// A scan of one short id.
    pub(crate) fn scan(at: i64, entry_url: &str, agent: &str, referer: &str) -> Scan {
        let mut texts = String::new();
        let cuts = ["tn.gg", "ABC", entry_url, agent, referer].map(|text| {
            texts.push_str(text);
            texts.len() as u16
        });
        Scan { at: UnixMillis(at), ip: [127, 0, 0, 1].into(), texts: texts.into(), cuts, fired: None }
    }

    /// The same with a language.
    fn in_language(scan: Scan, language: &str) -> Scan {
        Scan { texts: format!("{}{language}", scan.texts).into(), ..scan }
    }

    /// Decodes what was encoded; no prefix of it can be decoded.
    fn read(written: &[u8]) -> ScanRecord {
        let (payload, rest) = split_frame(written).unwrap();
        assert!(rest.is_empty());
        for cut in 0..payload.len() {
            assert!(decode(&payload[..cut]).is_none());
        }
        for cut in 0..written.len() {
            assert!(split_frame(&written[..cut]).is_none());
        }
        decode(payload).unwrap()
    }

    proptest! {
        #[test]
        fn records_round_trip(at: i64, v6: u128, url in ".{1,80}", agent in ".{0,80}", referer in ".{0,40}",
            language in "[a-zA-Z-]{0,16}") {
            for ip in [IpAddr::V4([10, 0, 0, 1].into()), IpAddr::V6(v6.into())] {
                let scan = Scan { ip, ..in_language(scan(at, &url, &agent, &referer), &language) };
                let mut bytes = Vec::new();
                write(&scan, &mut bytes);
                // A release that knows no languages reads records without one.
                prop_assert_eq!(bytes[8], if language.is_empty() { 1 } else { 4 });
                let read = read(&bytes);
                prop_assert_eq!(read.at.0, at);
                prop_assert_eq!(read.ip, ip);
                prop_assert_eq!((&*read.domain, &*read.folded), ("tn.gg", "ABC"));
                prop_assert_eq!(&*read.entry_url, &*url);
                prop_assert_eq!(read.user_agent.as_deref().unwrap_or_default(), &*agent);
                prop_assert_eq!(read.referer.as_deref().unwrap_or_default(), &*referer);
                prop_assert_eq!(read.language.as_deref().unwrap_or_default(), &*language);
            }
        }

        #[test]
        fn records_with_a_rule_round_trip(named: bool, own: bool, index: u16, name in ".{1,40}",
            path in "[a-z]{0,2000}", language in prop::sample::select(vec!["", "de-CH"])) {
            let location = format!("https://example.com/{path}");
            let rule = RuleName {
                application: (!own).then(|| APPLICATION.parse().unwrap()),
                index,
                name: named.then(|| cut(&name, MAX_NAME).into()),
            };
            let fired = Fired { rule: Arc::new(rule), location: location.as_str().try_into().unwrap() };
            let scan = in_language(scan(1, "https://tn.gg/ABC", "", ""), language);
            let scan = Scan { fired: Some(Box::new(fired)), ..scan };
            let mut bytes = Vec::new();
            write(&scan, &mut bytes);
            let read = read(&bytes);
            prop_assert_eq!(read.language.as_deref().unwrap_or_default(), language);
            let fired = read.rule.unwrap();
            prop_assert_eq!(fired.application, (!own).then(|| APPLICATION.parse().unwrap()));
            prop_assert_eq!((fired.index, &*fired.redirect_url), (index, &*location));
            prop_assert_eq!(fired.name, named.then(|| cut(&name, MAX_NAME).into()));
        }

        #[test]
        fn any_bytes_are_decoded_without_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes);
            let _ = read_all(&bytes);
        }
    }

    #[test]
    fn records_of_the_previous_version_are_read() {
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
    fn sums_round_trip() {
        let sum = Sum {
            at: UnixMillis(60_000),
            domain: "tn.gg".into(),
            folded: "ABC".into(),
            count: 7.try_into().unwrap(),
        };
        let mut bytes = Vec::new();
        put_sum(&sum, &mut bytes);
        let read = read(&bytes);
        assert_eq!((read.at, &*read.folded, read.count), (sum.at, "ABC", Some(sum.count)));
    }

    #[test]
    fn a_typical_record_is_under_200_bytes() {
        let agent =
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
        let mut bytes = Vec::new();
        write(&scan(1_790_000_000_000, "https://tn.gg/K7Q2M4XA9R", agent, ""), &mut bytes);
        assert!(bytes.len() < 200, "{}", bytes.len());
    }
}
