//! Encodes sums of scans in their format on disk.

use shared::wire::spooled::write_sum;

use super::degrade::Sum;

/// Appends a sum to `out`.
pub(super) fn put_sum(sum: &Sum, out: &mut Vec<u8>) {
    write_sum(sum.at, sum.count, [&sum.domain, &sum.folded], out);
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use shared::{
        time::UnixMillis,
        wire::{
            scan::ScanRecord,
            spooled::{decode, read_all, split_frame},
        },
    };

    use super::*;

    /// Decodes what was encoded; no prefix of it can be decoded.
    pub(crate) fn read(written: &[u8]) -> ScanRecord {
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
}
