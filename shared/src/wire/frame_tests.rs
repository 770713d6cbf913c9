use proptest::prelude::*;

use super::*;
use crate::{
    id::AccountId,
    redirect::RedirectKey,
    rules::AccountRules,
    short_url::Scheme,
    wire::stream::{Change, Events, Welcome},
};

fn event(rev: Rev, length: usize) -> Event {
    Event { rev, change: Change::Redirect(RedirectKey::new("tn.gg", &"A".repeat(length)), None) }
}

fn events(prev: Rev, lengths: &[usize]) -> Events {
    let items: Vec<_> = lengths.iter().zip(prev + 1..).map(|(length, rev)| event(rev, *length)).collect();
    Events { prev, last: prev + items.len() as Rev, items }
}

fn welcome(domains: usize, rules: usize) -> Welcome {
    Welcome {
        epoch: "E".into(),
        head: 9,
        compacted: 2,
        start: Start::Snapshot { at_rev: 8 },
        domains: (0..domains)
            .map(|n| ShortDomain::new(Scheme::Https, &format!("d{n}.example")).unwrap())
            .collect(),
        rules: (0..rules)
            .map(|n| Arc::new(AccountRules { account: AccountId::new(n as i64, [0; 16]), lists: Vec::new() }))
            .collect(),
        withheld: rules
            .is_multiple_of(2)
            .then(|| (0..rules).map(|n| Withheld::Host(format!("h{n}.example").into())).collect()),
        kept: vec![7; rules],
        kept_certificates: (rules > 0).then(|| vec![9; rules]),
        certificates: (0..rules).map(|n| Arc::new(certificate(&format!("h{n}.example")))).collect(),
        challenges: (0..rules).map(|n| Arc::new(challenge(&format!("h{n}.example")))).collect(),
    }
}

fn certificate(host: &str) -> DomainCertificate {
    DomainCertificate { host: host.into(), chain: "PEM".into(), key: "SECRET".into(), not_after: 9 }
}

fn challenge(host: &str) -> Challenge {
    Challenge { host: host.into(), token: "T".into(), key_authorization: "T.K".into() }
}

fn decode<M: Message>(bytes: &[u8], step: usize) -> Result<Vec<M>, FrameError> {
    let (mut decoder, mut messages) = (Decoder::<M>::default(), Vec::new());
    for part in bytes.chunks(step) {
        decoder.buffer.extend_from_slice(part);
        while let Some(message) = decoder.decode()? {
            messages.push(message);
        }
    }
    assert!(decoder.buffer.is_empty(), "{} bytes are left", decoder.buffer.len());
    Ok(messages)
}

#[test]
fn messages_round_trip_in_any_chunks() {
    let messages = [
        ToEdge::Welcome(welcome(3, 2)),
        ToEdge::Events(Arc::new(events(4, &[10, 1, 500]))),
        ToEdge::Heartbeat { seq: 1, head: 7 },
        ToEdge::Goaway { reason: "drain".to_owned(), retry_after_ms: 50 },
    ];
    let mut bytes = BytesMut::new();
    messages.iter().for_each(|message| message.encode(&mut bytes).unwrap());
    for step in [1, 7, 100_000] {
        assert_eq!(decode::<ToEdge>(&bytes, step).unwrap(), messages, "in steps of {step}");
    }
    let messages = [
        ToControl::Hello(Hello {
            proto: 3,
            edge_id: "e".into(),
            region: "r".into(),
            build: "b".into(),
            epoch: None,
            applied: 0,
            contents: vec![0, u64::MAX],
            certificates: Some(vec![u64::MAX]),
        }),
        ToControl::Ack { applied: 3, rejected: vec![Rejected { rev: 2, reason: "no".to_owned() }] },
        ToControl::Resync { applied: 3, reason: "gap".to_owned() },
    ];
    let mut bytes = BytesMut::new();
    messages.iter().for_each(|message| message.encode(&mut bytes).unwrap());
    assert_eq!(decode::<ToControl>(&bytes, 3).unwrap(), messages);
}

#[test]
fn large_messages_are_split_and_stay_in_order() {
    let long = events(10, &[100_000; 9]);
    let bytes = encode(&ToEdge::Events(Arc::new(long.clone()))).unwrap();
    let (mut prev, mut items) = (10, Vec::new());
    for message in decode::<ToEdge>(&bytes, 4_096).unwrap() {
        let ToEdge::Events(part) = message else { panic!("{message:?}") };
        assert_eq!(part.prev, prev);
        prev = part.last;
        items.extend(part.items.iter().cloned());
    }
    assert_eq!((prev, items), (long.last, long.items));

    let large = welcome(9_000, 1);
    let bytes = encode(&ToEdge::Welcome(large.clone())).unwrap();
    assert!(bytes.len() > MAX_BODY, "{}", bytes.len());
    assert_eq!(decode::<ToEdge>(&bytes, 60_000).unwrap(), [ToEdge::Welcome(large)]);

    let alone = encode(&ToEdge::Events(Arc::new(events(0, &[MAX_BODY]))));
    assert!(matches!(alone, Err(FrameError::TooLong(_))));
}

#[test]
fn a_welcome_has_what_was_encoded_for_all_beside_its_own() {
    let whole = welcome(9_000, 2);
    let of = |from: usize, to: usize| Chunks::of(&whole.domains[from..to], &[], &[]).unwrap();
    let withheld = Chunks::of(&[], &[], whole.withheld.as_deref().unwrap()).unwrap();
    let (first, rest) = (of(0, 10), of(10, 9_000));
    let own = Welcome { domains: Vec::new(), withheld: Some(Vec::new()), ..whole.clone() };
    let parts = encode_welcome(&own, &[&first, &of(0, 0), &rest, &withheld]).unwrap();
    assert_eq!(decode::<ToEdge>(&parts.concat(), 60_000).unwrap(), [ToEdge::Welcome(whole)]);
    let again = encode_welcome(&Welcome { head: 8, ..own }, &[&rest]).unwrap();
    assert_eq!(again[1].as_ptr(), parts[3].as_ptr(), "not copied");
    let keys = Chunks::of_certificates(&welcome(0, 1).certificates, &[]).unwrap();
    assert!(!format!("{keys:?}").contains("SECRET"));
}

/// Frames by themselves, as pairs of kind and bytes.
fn frames(mut bytes: Bytes) -> Vec<(u8, Bytes)> {
    let mut frames = Vec::new();
    while let Some(&[a, b, c, d]) = bytes.first_chunk::<4>() {
        let frame = bytes.split_to(HEAD + u32::from_le_bytes([a, b, c, d]) as usize);
        frames.push((frame[4], frame));
    }
    frames
}

#[test]
fn an_incomplete_welcome_is_refused() {
    let bytes = encode(&ToEdge::Welcome(welcome(9_000, 0))).unwrap();
    let frames = frames(bytes);
    assert!(frames.len() > 4, "{}", frames.len());
    for left_out in 0..frames.len() - 1 {
        let rest: Vec<u8> = frames
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != left_out)
            .flat_map(|(_, (_, bytes))| bytes.to_vec())
            .collect();
        assert_eq!(decode::<ToEdge>(&rest, 50_000), Err(FrameError::Unfitting), "without {left_out}");
    }
    let mut swapped = frames.clone();
    swapped.swap(1, 2);
    let bytes: Vec<u8> = swapped.iter().flat_map(|(_, bytes)| bytes.to_vec()).collect();
    assert_eq!(decode::<ToEdge>(&bytes, 50_000), Err(FrameError::Unfitting));
}

#[test]
fn a_welcome_of_a_newer_release_is_read_without_what_it_alone_withholds() {
    let bytes = encode(&ToEdge::Welcome(welcome(1, 2))).unwrap();
    let [(_, head), ..] = &frames(bytes)[..] else { panic!("no frame") };
    let chunk = r#"[{"withheld":{"path":"/a"}},{"withheld":{"host":"h.example"}},{"colour":"red"}]"#;
    let chunk: Box<serde_json::value::RawValue> = serde_json::from_str(chunk).unwrap();
    let mut newer = BytesMut::from(&head[..]);
    put(&mut newer, kind::CHUNK, &chunk).unwrap();
    let hash = blake3::hash(chunk.get().as_bytes()).to_hex().to_string();
    put(&mut newer, kind::END, &End { count: 3, hash }).unwrap();
    let read = decode::<ToEdge>(&newer, 100).unwrap();
    let [ToEdge::Welcome(read)] = &read[..] else { panic!("{read:?}") };
    assert_eq!(read.withheld.as_deref(), Some(&[Withheld::Host("h.example".into())][..]));
}

#[test]
fn invalid_frames_are_refused_and_unknown_kinds_skipped() {
    let beat = encode(&ToEdge::Heartbeat { seq: 1, head: 7 }).unwrap();
    for at in 4..beat.len() {
        let mut bytes = beat.to_vec();
        bytes[at] ^= 1;
        assert_eq!(decode::<ToEdge>(&bytes, 100), Err(FrameError::Corrupt), "byte {at}");
    }
    let mut newer = BytesMut::new();
    put(&mut newer, 200, "hologram").unwrap();
    newer.extend_from_slice(&beat);
    assert_eq!(decode::<ToEdge>(&newer, 100).unwrap(), [ToEdge::Heartbeat { seq: 1, head: 7 }]);
    let long = (MAX_BODY as u32 + 1).to_le_bytes();
    assert_eq!(decode::<ToEdge>(&long, 100), Err(FrameError::TooLong(MAX_BODY + 1)));
    let mut garbled = BytesMut::new();
    put(&mut garbled, kind::EVENTS, "no events").unwrap();
    assert!(matches!(decode::<ToEdge>(&garbled, 100), Err(FrameError::Unreadable { kind: 3, .. })));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::<ToEdge>::default();
        decoder.buffer.extend_from_slice(&bytes);
        while let Ok(Some(_)) = decoder.decode() {}
    }
}
