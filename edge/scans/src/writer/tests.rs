use shared::{time::UnixMillis, wire::spooled::NewRecord};

use super::{
    super::{SpoolLimits, degrade::Sum, reserve::Reserve},
    *,
};

/// Room for all that a test writes.
const LIMITS: SpoolLimits = SpoolLimits { spool_bytes: 2 << 30, segment_bytes: 64 << 20 };
const PHONE: &str =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1";

/// Appends the record of a scan.
fn put_scan(out: &mut Vec<u8>) {
    let texts = ["tn.gg", "ABC", "https://tn.gg/ABC", PHONE, ""];
    NewRecord {
        at: UnixMillis(1),
        ip: [127, 0, 0, 1].into(),
        texts,
        language: "",
        rule: None,
        link: None,
        in_memory: false,
    }
    .write(out);
}

#[test]
fn records_within_the_budget_of_one_large_write_are_kept() {
    const RECORD: usize = 60;
    let folder = tempfile::tempdir().unwrap();
    let limits = SpoolLimits { spool_bytes: 2_000, segment_bytes: 500 };
    let metrics = Arc::new(Metrics::default());
    let spool = Arc::new(Spool::open(folder.path(), limits, metrics.clone(), UnixMillis(1)).unwrap());
    let buffers = Arc::new(Buffers::new(1, 0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut work = Work::new(spool, buffers, metrics, stop);
    let write = |work: &mut Work, count: usize| {
        let ends: Vec<usize> = (1..=count).map(|record| record * RECORD).collect();
        work.write(&vec![7; count * RECORD], &ends);
    };
    write(&mut work, 5);
    write(&mut work, 95);
    // 31 records of 60 bytes fit 2,000 less what is kept back for sums; these are none, so they are lost. The ninth of a segment passes 500 bytes and is its last.
    let segments: Vec<(u64, u64)> = work.spool.segments().iter().map(|s| (s.first_seq, s.records)).collect();
    assert_eq!(segments, [(0, 9), (9, 9), (18, 9), (27, 4)]);
    assert_eq!((work.metrics.written.get(), work.metrics.lost.get()), (31, 69));
    // There is space again: lost records keep their numbers.
    let shipped = work.spool.segments().pop_front().unwrap();
    fs::remove_file(shipped.path).unwrap();
    write(&mut work, 1);
    let last = work.spool.segments().back().map(|s| (s.first_seq, s.records));
    assert_eq!(last, Some((100, 1)));
}

#[test]
fn a_full_disk_ends_a_segment() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::default());
    let spool = Arc::new(Spool::open(folder.path(), LIMITS, metrics.clone(), UnixMillis(1)).unwrap());
    let buffers = Arc::new(Buffers::new(1, 0));
    let mut work = Work::new(spool, buffers, metrics, Arc::new(AtomicBool::new(false)));
    let write = |work: &mut Work, count: usize| {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..count {
            put_scan(&mut bytes);
            ends.push(bytes.len());
        }
        work.write(&bytes, &ends);
    };
    write(&mut work, 2);
    work.file = Some(File::options().write(true).open("/dev/full").unwrap());
    write(&mut work, 3);
    assert_eq!((work.metrics.degraded.get(), work.metrics.lost.get()), (3, 0));
    write(&mut work, 1);
    let segments: Vec<(u64, u64, bool)> =
        work.spool.segments().iter().map(|s| (s.first_seq, s.records, s.is_sealed)).collect();
    assert_eq!(segments, [(0, 2, true), (2, 1, false)], "the shipper goes on to the next segment");
}

#[test]
fn sums_waiting_for_a_full_disk_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    // No space for a single record.
    let full = SpoolLimits { spool_bytes: 16, segment_bytes: 16 };
    let start = || {
        let metrics = Arc::new(Metrics::default());
        let spool = Spool::open(folder.path(), full, metrics.clone(), UnixMillis(1)).unwrap();
        let buffers = Arc::new(Buffers::new(1, 0));
        Work::new(Arc::new(spool), buffers, metrics, Arc::new(AtomicBool::new(false)))
    };
    let counts = |work: &Work| work.sums.iter().map(|sum| sum.count.get()).sum::<u32>();
    let mut work = start();
    for _ in 0..7 {
        let mut bytes = Vec::new();
        put_scan(&mut bytes);
        let end = bytes.len();
        work.write(&bytes, &[end]);
    }
    assert_eq!((work.metrics.degraded.get(), counts(&work)), (7, 7));
    work.keep_sums();
    // A kill: nothing is written any more.
    drop(work);
    let mut work = start();
    assert_eq!(counts(&work), 7, "the next start has them");
    // A graceful stop while there is still no space loses none either.
    work.write_sums(true);
    assert_eq!(work.metrics.lost.get(), 0);
    drop(work);
    let mut work = {
        let limits = SpoolLimits { spool_bytes: 1 << 20, ..full };
        let metrics = Arc::new(Metrics::default());
        let spool = Spool::open(folder.path(), limits, metrics.clone(), UnixMillis(1)).unwrap();
        let buffers = Arc::new(Buffers::new(1, 0));
        Work::new(Arc::new(spool), buffers, metrics, Arc::new(AtomicBool::new(false)))
    };
    work.write_sums(true);
    assert_eq!((work.metrics.written.get(), counts(&work)), (1, 0), "with room they are written");
    drop(work);
    let (_, left) = Reserve::open(folder.path()).unwrap();
    assert_eq!(left, b"", "and only once");
}

/// A kill between two steps: the spool has the sums, and the reserve has them still.
#[test]
fn sums_already_in_the_spool_are_not_restored_from_the_reserve() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let metrics = Arc::new(Metrics::default());
        let spool = Spool::open(folder.path(), LIMITS, metrics.clone(), UnixMillis(1)).unwrap();
        let buffers = Arc::new(Buffers::new(1, 0));
        Work::new(Arc::new(spool), buffers, metrics, Arc::new(AtomicBool::new(false)))
    };
    let sums: Vec<Sum> = (0..3)
        .map(|n: i64| Sum {
            at: UnixMillis(n * 60_000),
            domain: "tn.gg".into(),
            folded: "ABC".into(),
            count: std::num::NonZeroU32::new(7).unwrap(),
        })
        .collect();
    let mut work = start();
    work.sums.put_back(&sums);
    work.keep_sums();
    work.write_sums(true);
    let shipped = || work.spool.read(super::super::spool::Cursor::default()).unwrap();
    assert_eq!(shipped().unwrap().count, 3);
    drop(work);
    let cleared = std::fs::read(folder.path().join("sums")).unwrap();
    let waiting = |work: &Work| work.sums.iter().map(|sum| sum.count.get()).sum::<u32>();
    let work = start();
    assert_eq!(waiting(&work), 0);
    drop(work);
    // As it was before the last step: the newest half is torn, which leaves the one with the stamp.
    let newest = usize::from(cleared[0] < cleared[cleared.len() / 2]) * cleared.len() / 2;
    let mut stamped = cleared;
    stamped[newest + 12] ^= 1;
    std::fs::write(folder.path().join("sums"), stamped).unwrap();
    let mut work = start();
    assert_eq!(waiting(&work), 0, "all are in the spool");
    assert!(work.spool.holds_segments.load(SeqCst), "segments stay until the stamp is gone");
    work.keep_sums();
    assert!(!work.spool.holds_segments.load(SeqCst));
}

/// An edge that starts on a full disk has no reserve at first.
#[test]
fn the_reserve_is_created_once_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::default());
    let spool = Arc::new(Spool::open(folder.path(), LIMITS, metrics.clone(), UnixMillis(1)).unwrap());
    let buffers = Arc::new(Buffers::new(1, 0));
    // A folder in place of the file, which cannot be opened, stands for a disk without space.
    std::fs::create_dir(folder.path().join("sums")).unwrap();
    let mut work = Work::new(spool, buffers, metrics, Arc::new(AtomicBool::new(false)));
    assert_eq!(work.metrics.sums_reserved.get(), 0);
    let (domain, folded) = ("tn.gg".into(), "ABC".into());
    work.sums.put_back(&[Sum { at: UnixMillis(0), domain, folded, count: std::num::NonZeroU32::MIN }]);
    assert_eq!((work.keep_sums(), work.metrics.sums_unkept.get()), (1, 1));
    std::fs::remove_dir(folder.path().join("sums")).unwrap();
    work.reserve_tried -= Duration::from_secs(10);
    assert_eq!((work.keep_sums(), work.metrics.sums_unkept.get()), (0, 0));
    assert_eq!(work.metrics.sums_reserved.get(), 1);
    let (_, kept) = Reserve::open(folder.path()).unwrap();
    assert!(!kept.is_empty());
}
