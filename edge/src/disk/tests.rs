use shared::{
    short_url::Scheme,
    time::UnixMillis,
    wire::stream::{Change, Event, Events, Fill},
};

use super::*;
use crate::cache::{Held, KeyRef};

fn key(n: u64) -> RedirectKey {
    RedirectKey::new("tn.gg", &format!("K{n}"))
}

fn record(n: u64, target: u64) -> Arc<Redirect> {
    Arc::new(Redirect::plain(
        "tn.gg".parse().unwrap(),
        format!("K{n}").parse().unwrap(),
        "0".repeat(24).parse().unwrap(),
        format!("https://example.com/{target}"),
        UnixMillis(0),
    ))
}

fn events(prev: Rev, items: &[(u64, bool)]) -> Events {
    let items: Vec<_> = (prev + 1..)
        .zip(items)
        .map(|(rev, (n, is_put))| Event {
            rev,
            change: Change::Redirect(key(*n), is_put.then(|| record(*n, rev))),
        })
        .collect();
    Events { prev, last: prev + items.len() as Rev, items }
}

fn target(cache: &EdgeCache, n: u64) -> String {
    match cache.held(KeyRef::of(&key(n))) {
        Held::Present(served) => served.record.target.rsplit('/').next().unwrap().to_owned(),
        other => format!("{other:?}"),
    }
}

fn write(folder: &Path, cache: &EdgeCache, domains: &Domains) {
    let throttle = Throttle { bytes_per_second: None, begun: Instant::now(), stop: CancellationToken::new() };
    write_all(folder, u64::MAX, &cache.holding().unwrap(), domains, &throttle).unwrap();
}

/// A cache at revision 10 that holds keys 1 to 3 as of then, and key 4 as absent.
fn filled() -> (EdgeCache, Domains) {
    let (cache, domains) = (EdgeCache::new(1 << 20), Domains::default());
    domains.replace(0, &[ShortDomain::new(Scheme::Https, "tn.gg").unwrap()], None);
    cache.snapshot(&"E".into(), 10, &[]);
    for n in 1..=4 {
        let value = (n < 4).then(|| (n, record(n, n)));
        let fill = Fill { epoch: "E".into(), complete: true, watermark: 10, value };
        assert!(cache.take_view(&key(n), &fill));
    }
    (cache, domains)
}

#[test]
fn a_saved_cache_is_loaded_and_the_stream_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, domains) = filled();
    cache.apply(&events(10, &[(1, true), (2, false)]), &domains).unwrap();
    write(folder.path(), &cache, &domains);

    let (cache, domains) = (EdgeCache::new(1 << 20), Domains::default());
    assert_eq!(load(folder.path(), &cache, &domains), Some(12));
    assert_eq!((cache.position(), domains.all().len()), ((Some("E".into()), 12), 1));
    assert_eq!((1..=4).map(|n| target(&cache, n)).collect::<Vec<_>>(), ["11", "Absent", "3", "Absent"]);
    // What came before is known already; what comes after is applied.
    cache.apply(&events(10, &[(1, true), (2, false)]), &domains).unwrap();
    cache.apply(&events(12, &[(3, false), (4, true)]), &domains).unwrap();
    assert_eq!((1..=4).map(|n| target(&cache, n)).collect::<Vec<_>>(), ["11", "Absent", "Absent", "14"]);
}

#[test]
fn the_first_contact_makes_older_entries_stale() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, domains) = filled();
    write(folder.path(), &cache, &domains);
    let (cache, domains) = (EdgeCache::new(1 << 20), Domains::default());
    load(folder.path(), &cache, &domains);
    assert_eq!(target(&cache, 1), "1", "nobody answers: it is served");
    cache.confirm(12);
    assert_eq!(target(&cache, 1), "Stale");
    let fill = |watermark, value: Option<(Rev, Arc<Redirect>)>| Fill {
        epoch: "E".into(),
        complete: true,
        watermark,
        value,
    };
    assert!(!cache.take_view(&key(1), &fill(11, Some((1, record(1, 1))))), "an older view");
    assert!(cache.take_view(&key(3), &fill(12, None)), "control's own state");
    assert_eq!(target(&cache, 3), "Absent");
    cache.apply(&events(10, &[(1, true)]), &domains).unwrap();
    assert_eq!(target(&cache, 2), "Stale", "not yet at the head");
    cache.apply(&events(11, &[(3, false)]), &domains).unwrap();
    // A key that shares its floor with the newer fill is removed instead of replaced; never the old one stays.
    assert!(["11", "Nothing"].contains(&target(&cache, 1).as_str()), "{}", target(&cache, 1));
    assert_eq!([2, 3].map(|n| target(&cache, n)), ["2", "Absent"]);
    cache.confirm(15);
    assert_eq!(target(&cache, 2), "Stale");
    cache.release();
    assert_eq!(target(&cache, 2), "2", "nobody answers again");
}

#[test]
fn a_snapshot_or_another_epoch_invalidates_entries_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, domains) = filled();
    write(folder.path(), &cache, &domains);
    for (epoch, left) in [("E", "Stale"), ("F", "Nothing")] {
        let (cache, domains) = (EdgeCache::new(1 << 20), Domains::default());
        load(folder.path(), &cache, &domains);
        cache.snapshot(&epoch.into(), 20, &[]);
        assert_eq!(target(&cache, 1), left, "{epoch}");
    }
}

#[test]
fn a_damaged_file_is_skipped_wherever_it_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, domains) = filled();
    write(folder.path(), &cache, &domains);
    let path = folder.path().join("held");
    let whole = fs::read(&path).unwrap();
    let passed = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let (cache, domains) = (EdgeCache::new(1 << 20), Domains::default());
        load(folder.path(), &cache, &domains).is_none() && cache.position().0.is_none()
    };
    assert!(!passed(&whole));
    for cut in 0..whole.len() {
        assert!(passed(&whole[..cut]), "cut at {cut}");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        assert!(passed(&damaged), "damaged at {at}");
    }
    assert!(passed(&[&whole[..], b"x"].concat()), "something behind");
}
