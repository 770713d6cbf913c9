//! Loads the full replica from control page by page, and saves it to disk.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    backing::{Backing, BackingError, jittered},
    cache::{EdgeCache, PageFit, Reading},
    config::DiskLimits,
    disk::Throttle,
    domains::Domains,
};

/// Interval of the check whether there is something to load.
const LOOK: Duration = Duration::from_millis(100);
/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// First and longest wait after a page that did not come; a random half is taken off.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// The full replica is saved once per this many saves of the cache, because it is much larger.
const DISK_INTERVALS: u32 = 10;

/// Loads what is missing until `stop`.
pub(crate) async fn read<B: Backing>(
    backing: Arc<B>,
    cache: Arc<EdgeCache>,
    domains: Arc<Domains>,
    stop: CancellationToken,
) {
    let read = async {
        loop {
            if let Some(reading) = cache.unread() {
                read_all(&*backing, &cache, &domains, reading).await;
            }
            sleep(LOOK).await;
        }
    };
    stop.run_until_cancelled(read).await;
}

/// Reads the links of every domain. Those of a domain that is added meanwhile come as events, all of them.
async fn read_all<B: Backing>(backing: &B, cache: &EdgeCache, domains: &Domains, reading: Reading) {
    let (begun, mut count) = (Instant::now(), 0);
    for domain in domains.all() {
        let host = domain.host.as_str();
        let (mut after, mut backoff) = (Arc::<str>::from(""), BACKOFF.0);
        loop {
            if !reading.is_current(cache) {
                tracing::info!("reloading all links, because the log was cut");
                return;
            }
            let page = match timeout(PAGE_TIMEOUT, backing.page(host, &after)).await {
                Ok(Ok(page)) if page.epoch == reading.epoch => Ok(page),
                Ok(Ok(_)) => Err("another history".to_owned()),
                Ok(Err(BackingError::Unreachable(reason) | BackingError::Refused(reason))) => Err(reason),
                Err(_) => Err("no answer in time".to_owned()),
            };
            let page = page.and_then(|page| match reading.take(host, &page) {
                PageFit::Taken => Ok(page),
                PageFit::TooOld => Err("more changed meanwhile than is remembered".to_owned()),
            });
            match page {
                Ok(page) => {
                    (count, backoff) = (count + page.links.len(), BACKOFF.0);
                    match page.links.last() {
                        Some((last, ..)) if page.more => after = last.clone(),
                        Some(_) | None => break,
                    }
                }
                Err(reason) => {
                    tracing::debug!(domain = host, %reason, "a page of links is read again");
                    sleep(jittered(backoff)).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                }
            }
        }
    }
    reading.end();
    tracing::info!(links = count, took = ?begun.elapsed(), "all links are read");
}

/// Writes all links to disk again and again until `stop`, and once more then.
pub(crate) async fn keep(
    folder: PathBuf,
    limits: DiskLimits,
    cache: Arc<EdgeCache>,
    stop: CancellationToken,
) {
    let mut last = None;
    let mut write = async |bytes_per_second: Option<u64>, stop: CancellationToken| {
        let Some(whole) = cache.whole() else { return };
        let at = (whole.epoch().clone(), whole.applied());
        if last.as_ref() == Some(&at) {
            return;
        }
        let folder = folder.clone();
        let write = move || {
            let throttle = Throttle { bytes_per_second, begun: Instant::now(), stop };
            let (epoch, applied) = (whole.epoch(), whole.applied());
            replica::save(
                &folder,
                whole.table(),
                epoch,
                applied,
                || whole.last(),
                |bytes| throttle.rest(bytes),
            )
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok((links, bytes))) => {
                last = Some(at);
                tracing::info!(links, bytes, "all links are on disk");
            }
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => tracing::error!(%error, "the links could not be written"),
            Err(error) => tracing::error!(%error, "writing the links panicked"),
        }
    };
    // Frequently after all links were loaded, then seldom; always while control is down, because a kill would lose
    // what cannot be loaded again.
    let mut intervals = DISK_INTERVALS;
    while stop.run_until_cancelled(sleep(limits.interval)).await.is_some() {
        intervals += 1;
        if cache.whole().is_none() || (intervals < DISK_INTERVALS && cache.is_live()) {
            continue;
        }
        write(Some(limits.bytes_per_second), stop.clone()).await;
        intervals = 0;
    }
    write(None, CancellationToken::new()).await;
}

#[cfg(test)]
mod tests {
    use shared::{
        redirect::{Redirect, RedirectKey},
        time::UnixMillis,
        wire::links::LinksPage,
    };

    use super::*;
    use crate::{
        cache::{Held, KeyRef},
        disk,
    };

    fn page(at_rev: u64, ids: &[&str]) -> LinksPage {
        let link = |id: &&str| {
            let record = Redirect::plain(
                "tn.gg".parse().unwrap(),
                id.parse().unwrap(),
                "0".repeat(24).parse().unwrap(),
                "https://example.com/",
                UnixMillis(0),
            );
            (Arc::from(*id), at_rev, Arc::new(record))
        };
        LinksPage { epoch: "E".into(), at_rev, more: false, links: ids.iter().map(link).collect() }
    }

    /// The stream ends at revision 10 when the pages of revision 12 are in: the edge is stale, and then killed.
    #[tokio::test]
    async fn the_links_of_a_stale_full_replica_are_kept_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, domains) = (Arc::new(EdgeCache::full(1 << 20)), Domains::default());
        cache.snapshot(&"E".into(), 10, &[]);
        let reading = cache.unread().unwrap();
        assert_eq!(reading.take("tn.gg", &page(12, &["ONE", "TWO"])), PageFit::Taken);
        reading.end();
        let limits = DiskLimits { interval: Duration::from_millis(10), ..DiskLimits::default() };
        let stop = CancellationToken::new();
        let kept = [
            tokio::spawn(keep(folder.path().to_owned(), limits, cache.clone(), stop.clone())),
            tokio::spawn(disk::keep(
                folder.path().to_owned(),
                limits,
                cache.clone(),
                Arc::new(Domains::default()),
                stop.clone(),
            )),
        ];
        let written = async {
            while !(folder.path().join("links").exists() && folder.path().join("held").exists()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(30), written).await.expect("what was read is written");
        kept.iter().for_each(tokio::task::JoinHandle::abort);

        let cache = EdgeCache::full(1 << 20);
        assert_eq!(disk::load(folder.path(), &cache, &domains), Some(10));
        for id in ["ONE", "TWO"] {
            let key = RedirectKey::new("tn.gg", id);
            assert!(matches!(cache.held(KeyRef::of(&key)), Held::Present(_)), "{id}");
        }
        // Saved again before anything new arrived, it claims the same age of its parts.
        assert_eq!(cache.whole().unwrap().last().0, 12);
    }
}
