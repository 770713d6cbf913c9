use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::LazyLock};

use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair};
use shared::{
    short_url::{Scheme, ShortDomain},
    wire::stream::Event,
};

use super::*;
use crate::challenges::{ANSWERED, MAX_HOSTS};

const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];

/// Two certificates of each host.
static MADE: LazyLock<Vec<[Arc<DomainCertificate>; 2]>> =
    LazyLock::new(|| HOSTS.map(|host| [0, 1].map(|_| Arc::new(issue(host)))).to_vec());

fn issue(host: &str) -> DomainCertificate {
    let key = KeyPair::generate().unwrap();
    let shown = CertificateParams::new(vec![host.to_owned()]).unwrap().self_signed(&key).unwrap();
    let (chain, key) = (shown.pem().into(), key.serialize_pem().into());
    DomainCertificate { host: host.into(), chain, key, not_after: 0 }
}

fn open(folder: &Path) -> Received {
    Received::open(Some(folder.join("certificates")))
}

fn certificate(host: usize, version: usize) -> Arc<DomainCertificate> {
    MADE[host][version].clone()
}

/// Which of its certificates each host has.
fn held(received: &Received) -> Vec<Option<usize>> {
    let of = |host: usize| {
        let pair = received.find(HOSTS[host])?;
        let is_it =
            |version: &usize| pair::chain(certificate(host, *version).chain.as_bytes()).unwrap() == pair.cert;
        Some((0..2).find(is_it).unwrap())
    };
    (0..HOSTS.len()).map(of).collect()
}

fn event(rev: Rev, change: Change) -> Events {
    Events { prev: rev - 1, items: vec![Event { rev, change }], last: rev }
}

/// The ways in which a certificate is wrong.
fn broken(host: usize, version: usize) -> Vec<(&'static str, DomainCertificate)> {
    let good = certificate(host, version);
    let other = certificate((host + 1) % HOSTS.len(), 0);
    let with = |chain: &str, key: &str| DomainCertificate {
        chain: chain.into(),
        key: key.into(),
        host: good.host.clone(),
        not_after: good.not_after,
    };
    let one_line = "-----BEGIN PRIVATE KEY-----SECRET\n";
    vec![
        ("a key of another", with(&good.chain, &other.key)),
        ("a certificate of another host", with(&other.chain, &other.key)),
        ("no chain", with("", &good.key)),
        ("rubbish", with("rubbish", &good.key)),
        ("no key", with(&good.chain, "")),
        ("a key in one line", with(&good.chain, one_line)),
        ("a long key", with(&good.chain, &"SECRET".repeat(MAX_KEY_BYTES))),
        ("a long chain", with(&"C".repeat(MAX_CHAIN_BYTES + 1), &good.key)),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Put(usize, usize),
    Break(usize, usize, usize),
    Remove(usize),
    RemoveDomain(usize),
    /// Which certificate each host has in it.
    Welcome([Option<usize>; 3]),
    /// The welcome of an older control, which knows these domains.
    Older([bool; 3]),
    Again,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let (host, version) = (0..3_usize, 0..2_usize);
    prop_oneof![
        4 => (host.clone(), version.clone()).prop_map(|(host, version)| Step::Put(host, version)),
        2 => (host.clone(), version.clone(), 0..8_usize).prop_map(|(host, version, fault)| Step::Break(host, version, fault)),
        1 => host.clone().prop_map(Step::Remove),
        1 => host.prop_map(Step::RemoveDomain),
        2 => any::<[bool; 6]>().prop_map(|is| {
            Step::Welcome(std::array::from_fn(|host| is[host].then_some(usize::from(is[host + 3]))))
        }),
        1 => any::<[bool; 3]>().prop_map(Step::Older),
        1 => Just(Step::Again),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_last_change_of_a_host_is_held(steps in proptest::collection::vec(step(), 1..24)) {
        let folder = tempfile::tempdir().unwrap();
        let mut received = open(folder.path());
        let mut model = vec![None; HOSTS.len()];
        let mut sent: Vec<Events> = Vec::new();
        for (rev, step) in (1..).zip(steps) {
            let mut apply = |change: Change| {
                let events = event(rev, change);
                let refused = received.apply(&events);
                sent.push(events);
                refused
            };
            match step.clone() {
                Step::Put(host, version) => {
                    let change = Change::Certificate(HOSTS[host].into(), Some(certificate(host, version)));
                    prop_assert_eq!(apply(change), []);
                    model[host] = Some(version);
                }
                Step::Break(host, version, fault) => {
                    let (what, broken) = broken(host, version).swap_remove(fault);
                    let refused = apply(Change::Certificate(HOSTS[host].into(), Some(broken.into())));
                    // The one that is held may have a key that cannot be read: it is not looked at.
                    let is_same = model[host] == Some(version) && fault != 1 && fault < 7;
                    prop_assert!(refused.len() == 1 || is_same, "{}: {:?}", what, refused);
                    prop_assert!(!format!("{refused:?}").contains("SECRET"), "{:?}", refused);
                }
                Step::Remove(host) => {
                    prop_assert_eq!(apply(Change::Certificate(HOSTS[host].into(), None)), []);
                    model[host] = None;
                }
                Step::RemoveDomain(host) => {
                    let domain = ShortDomain::new(Scheme::Https, HOSTS[host]).unwrap();
                    prop_assert_eq!(apply(Change::Domain(ShortDomain { removed: true, ..domain })), []);
                    model[host] = None;
                }
                Step::Welcome(has) => {
                    let listed = |(host, version): (usize, Option<usize>)| Some(certificate(host, version?));
                    let all: Vec<_> = has.into_iter().enumerate().filter_map(listed).collect();
                    // Control leaves out what the edge holds.
                    let digest = |one: &Arc<DomainCertificate>| contents::digest_of_certificate(&one.host, &one.chain);
                    let now = contents::digests_of(all.iter().map(digest).collect());
                    let kept = contents::same(&received.digests(), &now);
                    let is_sent = |one: &Arc<DomainCertificate>| !kept.contains(&contents::group_of_host(&one.host));
                    let sent: Vec<_> = all.into_iter().filter(is_sent).collect();
                    prop_assert_eq!(received.replace(rev, Some(&kept), &sent, &[], &HashSet::new()), []);
                    model = has.to_vec();
                }
                Step::Older(has) => {
                    let domains = HOSTS.iter().zip(has).filter(|(_, has)| *has).map(|(host, _)| Box::<str>::from(*host));
                    prop_assert_eq!(received.replace(rev, None, &[], &[], &domains.collect()), []);
                    model.iter_mut().zip(has).filter(|(_, has)| !has).for_each(|(held, _)| *held = None);
                }
                // Only what the same contact has sent already comes again.
                Step::Again => sent.last().into_iter().for_each(|events| drop(received.apply(events))),
                Step::Restart => {
                    prop_assert!(received.save());
                    received = open(folder.path());
                    sent.clear();
                }
            }
            if matches!(step, Step::Welcome(_) | Step::Older(_)) {
                sent.clear();
            }
            prop_assert_eq!(held(&received), model.clone(), "{:?}", step);
        }
    }
}

#[test]
fn events_of_before_a_welcome_bring_no_older_certificate_back() {
    let received = Received::open(None);
    let put = |version| Change::Certificate(HOSTS[0].into(), Some(certificate(0, version)));
    assert!(received.replace(7, Some(&[]), &[certificate(0, 1)], &[], &HashSet::new()).is_empty());
    for rev in [5, 7] {
        assert!(received.apply(&event(rev, put(0))).is_empty());
        assert_eq!(held(&received)[0], Some(1), "at {rev}");
    }
    assert!(received.apply(&event(8, put(0))).is_empty());
    assert_eq!(held(&received)[0], Some(0));
    assert!(received.apply(&event(6, put(1))).is_empty());
    assert_eq!(held(&received)[0], Some(0), "an older one comes again");
}

#[test]
fn a_saved_key_is_its_users_alone_and_a_bad_file_concerns_its_host() {
    let folder = tempfile::tempdir().unwrap();
    let received = open(folder.path());
    let all: Vec<_> = (0..3).map(|host| certificate(host, 0)).collect();
    assert!(received.replace(1, Some(&[]), &all, &[], &HashSet::new()).is_empty());
    assert!(received.save());
    let at = |name: &str| folder.path().join("certificates").join(name);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&at("")), mode(&at("a.example.json"))), (0o700, 0o600));
    assert_eq!(held(&open(folder.path())), [Some(0), Some(0), Some(0)]);
    // Damaged, open to others, and one that was left unfinished.
    fs::write(at("a.example.json"), "{\"host\":\"a.example\",\"key\":\"SECRET\"").unwrap();
    fs::set_permissions(at("b.example.json"), fs::Permissions::from_mode(0o604)).unwrap();
    fs::write(at("d.example.new"), "{").unwrap();
    assert_eq!(held(&open(folder.path())), [None, None, Some(0)]);
    assert!(!at("d.example.new").exists(), "what was left unfinished is removed");
    fs::rename(at("c.example.json"), at("d.example.json")).unwrap();
    assert_eq!(held(&open(folder.path())), [None, None, None], "a file of another host");
    // What is sent again is written again.
    let received = open(folder.path());
    assert!(received.replace(2, Some(&[]), &all[..2], &[], &HashSet::new()).is_empty());
    assert!(received.save());
    assert_eq!(held(&open(folder.path())), [Some(0), Some(0), None]);
    let shown = format!("{received:?}");
    assert!(shown.contains('2') && !shown.contains("PRIVATE"), "{shown}");
}

#[test]
fn what_cannot_be_saved_is_saved_later() {
    let folder = tempfile::tempdir().unwrap();
    // A file stands in the place of the folder.
    fs::write(folder.path().join("certificates"), "").unwrap();
    let received = open(folder.path());
    assert!(
        received
            .replace(1, Some(&[]), &[certificate(0, 0), certificate(1, 0)], &[], &HashSet::new())
            .is_empty()
    );
    assert!(!received.save());
    let newer = Change::Certificate(HOSTS[0].into(), Some(certificate(0, 1)));
    assert!(received.apply(&event(2, newer)).is_empty());
    fs::remove_file(folder.path().join("certificates")).unwrap();
    assert!(received.save());
    assert_eq!(held(&open(folder.path())), [Some(1), Some(0), None]);
}

#[test]
fn a_host_is_a_name_and_no_path() {
    for (name, is_fine) in [
        ("a.example", true),
        ("xn--a-1.example", true),
        ("localhost", true),
        ("", false),
        (".", false),
        ("..", false),
        ("a..example", false),
        ("../a", false),
        ("a/b", false),
        ("A.example", false),
        ("[", false),
        ("a example", false),
    ] {
        assert_eq!(check_name(name).is_ok(), is_fine, "{name}");
    }
    assert!(check_name(&"a".repeat(64)).is_err() && check_name(&["a"; 128].join(".")).is_err());
    assert_eq!(&*name_of("TN.gg:8443"), "tn.gg");
}

#[test]
fn challenges_are_bounded_and_end() {
    let (challenges, begun) = (Challenges::default(), Instant::now());
    let of = |host: &str, token: &str, print: &str| {
        let key_authorization = format!("{token}.{print}").into();
        Arc::new(Challenge { host: host.into(), token: token.into(), key_authorization })
    };
    let answer = |host: &str, token: &str, at: Instant| {
        challenges.asked(host, token, at).map(|one| one.key_authorization.clone())
    };
    for n in 0..6 {
        challenges.add(&of("a.example", &format!("T{n}"), "PRINT"), begun).unwrap();
    }
    assert_eq!(answer("a.example", "T1", begun), None, "the oldest ones make room");
    assert_eq!(answer("a.example", "T5", begun).as_deref(), Some("T5.PRINT"));
    assert_eq!(answer("b.example", "T5", begun), None, "another host");
    assert!(challenges.certificate("a.example", begun).is_some());
    assert!(challenges.certificate("b.example", begun).is_none());
    challenges.add(&of("a.example", "T5", "OTHER"), begun).unwrap();
    assert_eq!(
        answer("a.example", "T5", begun).as_deref(),
        Some("T5.OTHER"),
        "the same token, another answer"
    );
    for (host, token) in
        [("a.example", "a/b"), ("a.example", ""), ("../a", "T"), ("a.example", &*"T".repeat(513))]
    {
        assert!(challenges.add(&of(host, token, "PRINT"), begun).is_err(), "{host} {token}");
    }

    // One that comes again is answered longer, and all others end.
    let (later, over) = (begun + ANSWERED / 2, begun + ANSWERED);
    challenges.add(&of("a.example", "T4", "PRINT"), later).unwrap();
    assert_eq!(answer("a.example", "T5", over - Duration::from_millis(1)).as_deref(), Some("T5.OTHER"));
    assert_eq!(answer("a.example", "T5", over), None, "its time is over");
    assert_eq!(answer("a.example", "T4", over).as_deref(), Some("T4.PRINT"));
    assert!(challenges.certificate("a.example", later + ANSWERED).is_none());
}

#[test]
fn hosts_with_challenges_are_bounded() {
    let (challenges, begun) = (Challenges::default(), Instant::now());
    let challenge = |host: &str| {
        Arc::new(Challenge { host: host.into(), token: "T".into(), key_authorization: "T.PRINT".into() })
    };
    for n in 0..MAX_HOSTS + 2 {
        challenges
            .add(&challenge(&format!("h{n}.example")), begun + Duration::from_millis(n as u64))
            .unwrap();
    }
    let is_known = |n: usize| challenges.asked(&format!("h{n}.example"), "T", begun).is_some();
    assert_eq!([0, 1, 2, MAX_HOSTS, MAX_HOSTS + 1].map(is_known), [false, false, true, true, true]);
}
