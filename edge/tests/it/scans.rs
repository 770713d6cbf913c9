//! Each redirect becomes one scan at control: over restarts, lost answers and torn files.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use edge::Edge;
use shared::{
    personal_data::PersonalData,
    short_url::{Scheme, ShortDomain},
    time::{ManualClock, UnixMillis},
    wire::stream::Change,
};

use crate::support::{Control, HOST, Running, account, edge, eventually, request};

fn segments(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut segments: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "seg")).collect();
    segments.sort();
    segments
}

async fn redirects(edge: &Running, count: usize) {
    for n in 0..count {
        assert_eq!(edge.get(&format!("/ABC?n={n}"), &[]).await.status, 307);
    }
}

fn assert_each_once(control: &Control, count: usize) {
    let scans = control.scans();
    let ids: BTreeSet<_> = scans.iter().map(|(boot, seq, _)| (*boot, *seq)).collect();
    assert_eq!((scans.len(), ids.len()), (count, count));
}

#[tokio::test]
async fn a_scan_records_request_and_client() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    let headers =
        [("user-agent", "Mozilla/5.0 (iPhone)"), ("referer", "https://shop.example/?access_token=SECRETKEY")];
    let spoken = [headers[0], headers[1], ("accept-language", "fr;q=0.7, de-CH, de;q=0.9")];
    edge.get("/abc?utm=1&access_token=SECRETKEY&x=2", &spoken).await;
    edge.get(&format!("/ABC?{}", "y".repeat(1_000)), &[("user-agent", &"u".repeat(1_000))]).await;
    eventually("the scans arrive", || control.scans().len() == 2).await;
    let [first, second] = control.scans().try_into().unwrap();
    let record = first.2;
    assert_eq!(record.at, UnixMillis(1_790_000_000_000));
    assert_eq!((&*record.domain, &*record.folded), ("tn.gg", "ABC"));
    assert_eq!(record.ip.to_string(), "127.0.0.1");
    assert_eq!(&*record.entry_url, "https://tn.gg/abc?utm=1&x=2");
    assert_eq!(record.user_agent.as_deref(), Some(headers[0].1));
    assert_eq!(record.referer.as_deref(), Some("https://shop.example/"));
    assert_eq!(record.language.as_deref(), Some("de-CH"));
    let record = second.2;
    assert_eq!((record.entry_url.len(), record.user_agent.unwrap().len(), record.referer), (256, 256, None));
    assert_eq!(record.language, None);
    edge.stop().await;
}

/// All files in a folder and below it.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// With `none`, neither spool nor control gets address or agent.
#[tokio::test]
async fn a_domain_without_personal_data_spools_no_client() {
    let (control, edge, folder) = edge().await;
    let of = |kept: PersonalData| {
        let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
        Change::Domain(ShortDomain { account: Some(account()), personal_data: Some(kept), ..domain })
    };
    control.put("ABC", "https://example.com/");
    control.acked(control.commit([of(PersonalData::None)])).await;
    control.faults(|faults| faults.refuses_scans = true);
    let agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
        Version/17.5 Mobile/15E148 Safari/604.1 Marked4711/7";
    let headers = [("user-agent", agent), ("accept-language", "de-CH")];
    for _ in 0..20 {
        edge.get("/ABC?utm=1", &headers).await;
    }
    edge.get("/UNKNOWN", &headers).await;
    eventually("they are written", || edge.handle.status().scans.recorded == 20).await;
    edge.stop().await;
    let mut looked_at = 0;
    for file in files_below(folder.path()) {
        let bytes = fs::read(file).unwrap();
        looked_at += bytes.len();
        for mark in [&b"Marked4711"[..], b"Mozilla", b"127.0.0.1", &[127, 0, 0, 1]] {
            assert!(!bytes.windows(mark.len()).any(|part| part == mark), "{mark:?} is on the disk");
        }
    }
    assert!(looked_at > 1_000, "there is a spool");
    control.faults(|faults| faults.refuses_scans = false);
    let edge = Running::start(&control, folder.path(), None, |_| {}).await;
    eventually("the scans arrive", || control.scans().len() == 20).await;
    for (_, _, record) in control.scans() {
        let client = record.client.unwrap();
        assert_eq!((record.ip.to_string().as_str(), record.user_agent), ("0.0.0.0", None));
        assert_eq!((client.name.as_deref(), client.system.as_deref()), (Some("Safari"), Some("iPhone")));
        assert!(client.device.is_some() && !client.bot);
        assert_eq!(
            (record.language.as_deref(), &*record.entry_url),
            (Some("de-CH"), "https://tn.gg/ABC?utm=1")
        );
    }
    // Told otherwise, it records as it did.
    control.acked(control.commit([of(PersonalData::Truncated)])).await;
    edge.get("/ABC", &headers).await;
    eventually("the scan arrives", || control.scans().len() == 21).await;
    let last = control.scans().pop().unwrap().2;
    assert_eq!((last.ip.to_string().as_str(), last.user_agent.as_deref()), ("127.0.0.1", Some(agent)));
    edge.stop().await;
}

#[tokio::test]
async fn only_redirects_are_scans() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    request(edge.plain, "HEAD", "tn.gg", "/ABC", &[]).await;
    edge.get("/ABC", &[("accept", "application/json")]).await;
    edge.get("/ABC.png", &[]).await;
    edge.get("/NONE", &[]).await;
    request(edge.plain, "POST", "tn.gg", "/ABC", &[]).await;
    request(edge.admin, "GET", "admin", "/live", &[]).await;
    redirects(&edge, 1).await;
    eventually("the scan arrives", || !control.scans().is_empty()).await;
    let handle = edge.handle.clone();
    edge.stop().await;
    assert_each_once(&control, 1);
    assert_eq!(handle.status().scans.recorded, 1);
}

#[tokio::test]
async fn shipped_segments_are_deleted() {
    let (control, edge, folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    redirects(&edge, 10).await;
    edge.stop().await;
    assert_each_once(&control, 10);
    assert_eq!(segments(folder.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn unshipped_scans_are_shipped_by_the_next_boot() {
    let (control, edge, folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    control.faults(|faults| faults.refuses_scans = true);
    redirects(&edge, 30).await;
    edge.stop().await;
    assert_eq!(control.scans().len(), 0);

    // A second boot that cannot ship either, whose end is torn, as by a loss of power.
    let edge = Running::start(&control, folder.path(), None, |_| {}).await;
    redirects(&edge, 20).await;
    edge.stop().await;
    let files = segments(folder.path());
    assert_eq!(files.len(), 2);
    let torn = fs::read(&files[1]).unwrap();
    let half_a_frame = &torn[..torn.len() / 40];
    OpenOptions::new().append(true).open(&files[1]).unwrap().write_all(half_a_frame).unwrap();

    // The answers to the first batches are lost: they are sent again and counted once.
    control.faults(|faults| (faults.refuses_scans, faults.lost_receipts) = (false, 2));
    let edge = Running::start(&control, folder.path(), None, |_| {}).await;
    redirects(&edge, 5).await;
    eventually("all scans arrive", || control.scans().len() >= 55).await;
    edge.stop().await;
    assert_each_once(&control, 55);
    let boots: BTreeSet<u64> = control.scans().iter().map(|(boot, ..)| *boot).collect();
    assert_eq!(boots.len(), 3, "each boot has its own number");
    assert_eq!(segments(folder.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_damaged_record_only_ends_its_segment() {
    let (control, edge, folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    control.faults(|faults| faults.refuses_scans = true);
    redirects(&edge, 10).await;
    edge.stop().await;
    let file = segments(folder.path()).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    // The last byte belongs to the last record.
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    control.faults(|faults| faults.refuses_scans = false);
    let edge = Running::start(&control, folder.path(), None, |_| {}).await;
    redirects(&edge, 1).await;
    eventually("the others arrive", || control.scans().len() == 10).await;
    edge.stop().await;
    assert_each_once(&control, 10);
}

#[tokio::test]
async fn scans_beyond_the_disk_budget_are_added_up() {
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    control.faults(|faults| faults.refuses_scans = true);
    let edge = Running::start(&control, folder.path(), None, |config| {
        (config.limits.spool_bytes, config.limits.segment_bytes) = (2_000, 500);
    })
    .await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    for n in 0..100 {
        edge.get(&format!("/ABC?n={n}"), &[("user-agent", "Mozilla/5.0 (iPhone) Safari")]).await;
    }
    edge.get("/ABC", &[("user-agent", "Googlebot/2.1")]).await;
    let scans = || edge.handle.status().scans;
    eventually("all are written or added up", || scans().written + scans().degraded == 100).await;
    let (written, degraded) = (scans().written, scans().degraded);
    assert!(written > 0 && degraded > 1, "{written} {degraded}");
    // No sum tells robots from people: that one is lost.
    eventually("the robot is counted", || scans().lost == 1).await;
    let total: u64 = segments(folder.path()).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(total <= 2_000 && segments(folder.path()).len() > 1, "{total}");
    control.faults(|faults| faults.refuses_scans = false);
    eventually("what was kept arrives", || control.scans().len() as u64 == written).await;
    edge.stop().await;
    // The sum of the minute comes at the stop, with a number of its own behind that of the robot.
    let (_, seq, sum) = control.scans().pop().unwrap();
    assert_eq!((seq, &*sum.folded, sum.at.0 % 60_000), (written + 1, "ABC", 0));
    assert_eq!(sum.count.map(|count| u64::from(count.get())), Some(degraded));
}

#[tokio::test]
async fn two_edges_cannot_share_a_folder_and_boots_never_repeat() {
    let (control, edge, folder) = edge().await;
    let config = || edge::EdgeConfig::new("edge-2", folder.path().to_owned(), "http://127.0.0.1:9", "d");
    let clock = || ManualClock::new(UnixMillis(5));
    assert!(Edge::open(config(), control.clone(), None, clock()).is_err());
    edge.stop().await;
    let boots = || {
        let text = fs::read_to_string(folder.path().join("boot")).unwrap();
        text.lines().map(|line| line[..20].parse::<u64>().unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = boots().pop_last().unwrap();
    // The clock went back to 1970: the number still grows.
    drop(Edge::open(config(), control.clone(), None, clock()).unwrap());
    assert_eq!(boots().pop_last(), Some(before + 1));
    // An edge that never served releases the folder.
    eventually("the folder is free", || Edge::open(config(), control.clone(), None, clock()).is_ok()).await;
}

/// A report whose answer was lost comes again as it was; what happened since comes in the next one.
#[tokio::test]
async fn requests_for_unknown_ids_are_reported_until_they_are_taken() {
    let (control, edge, _folder) = edge().await;
    control.faults(|faults| faults.lost_reports = 1);
    control.acked(control.put("ABC", "https://example.com/")).await;
    redirects(&edge, 1).await;
    for path in ["/NONE", "/NONE", "/OTHER.png"] {
        assert_eq!(edge.get(path, &[]).await.status, 404);
    }
    eventually("the report comes", || !control.reports().is_empty()).await;
    assert_eq!(edge.get("/LATER", &[]).await.status, 404);
    edge.stop().await;
    let reports = control.reports();
    assert_eq!(reports.len(), 3, "{reports:?}");
    assert_eq!(reports[0], reports[1], "the same under the same number");
    assert_eq!(
        (reports[2].number, reports[2].counts[0].requests),
        (2, 1),
        "what followed waited for its answer"
    );
    let [count] = &reports[0].counts[..] else { panic!("{reports:?}") };
    assert_eq!((&*count.key.domain, count.requests), ("tn.gg", 3));
    assert_eq!((count.key.network.to_string().as_str(), count.key.hour), ("127.0.0.0/24", 497_222));
}
