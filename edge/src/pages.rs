//! Reads every link from control, page by page, where the edge holds them all; and keeps them on disk.

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
    disk::Pace,
    domains::Domains,
    replica,
};

/// Time between two looks whether there is something to read.
const LOOK: Duration = Duration::from_millis(100);
/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// First and longest wait after a page that did not come; a random half is taken off.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// The links of all are written each so many times that the rest is written: they are much more.
const DISK_ROUNDS: u32 = 10;

/// Reads what is missing until `stop`.
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
                tracing::info!("the links are read anew, as history was cut");
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
            let pace = Pace { bytes_per_second, begun: Instant::now(), stop };
            let (epoch, applied) = (whole.epoch(), whole.applied());
            replica::save(&folder, whole.table(), epoch, applied, || whole.last(), |bytes| pace.rest(bytes))
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
    // Soon after all links were read, then seldom.
    while stop.run_until_cancelled(sleep(limits.interval)).await.is_some() {
        if cache.whole().is_none() {
            continue;
        }
        write(Some(limits.bytes_per_second), stop.clone()).await;
        if stop.run_until_cancelled(sleep(limits.interval * (DISK_ROUNDS - 1))).await.is_none() {
            break;
        }
    }
    write(None, CancellationToken::new()).await;
}
