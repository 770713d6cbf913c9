//! Saves what the edge holds to its own disk, so that it can start without control and Redis.
//!
//! The file is `held` in the data folder: a magic number, then frames `length | crc32c | JSON` — a head (epoch,
//! applied, domains, what is withheld), the rules of each account, the entries, and an end with their count. It is written to a temporary
//! file, synced and renamed. A damaged, truncated or unknown file is skipped with a line in the log.
//!
//! Consistency: `applied` is read before rules and entries are walked, so each entry is at least as new as `applied`,
//! because events continue meanwhile. Entries that are stale at that moment are left out. The stream may therefore
//! resume at `applied`: events bring the rest, and those already contained change nothing. A full replica has a file of
//! its own, and the edge resumes at the older of the two revisions.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use replica::Loaded;
use serde::{Deserialize, Serialize};
use shared::{
    redirect::{Redirect, RedirectKey},
    rules::AccountRules,
    short_url::ShortDomain,
    wire::stream::{Epoch, Rev},
    withheld::{Withheld, read_all_known},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cache::{EdgeCache, Holding, Kept, Sources},
    config::DiskLimits,
    domains::Domains,
};

/// First bytes of the file; the digit is the version of the form.
const MAGIC: &[u8; 8] = b"WMHELD1\n";
/// Most bytes of a frame: the domains of a hundred thousand accounts. Half of it may be files of domains.
const MAX_FRAME: usize = 64 << 20;
/// Bytes between two checks of write rate and shutdown.
const STEP: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Frame {
    Head {
        epoch: Epoch,
        applied: Rev,
        rules_as_of: Rev,
        domains: Vec<ShortDomain>,
        /// Nothing in a file of an older release.
        #[serde(default, deserialize_with = "read_all_known")]
        withheld: Vec<Withheld>,
    },
    Rules(Arc<AccountRules>),
    /// Key, revision, as of, value.
    Entry(RedirectKey, Rev, Rev, Option<Arc<Redirect>>),
    End {
        entries: u64,
    },
}

/// Reads what an earlier start left, into a cache that is then served; the revision it stands at.
pub(crate) fn load(folder: &Path, cache: &EdgeCache, domains: &Domains) -> Option<Rev> {
    let path = folder.join("held");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::error!(%error, "the saved cache cannot be read");
            return None;
        }
    };
    let begun = Instant::now();
    let links = if cache.is_full() { replica::load(folder) } else { None };
    match read(BufReader::with_capacity(256 << 10, file), links, cache, domains) {
        Ok((applied, entries)) => {
            tracing::info!(applied, entries, took = ?begun.elapsed(), "serving the saved cache");
            Some(applied)
        }
        Err(error) => {
            tracing::error!(%error, file = %path.display(), "the saved cache is damaged and ignored");
            None
        }
    }
}

fn read(
    mut file: impl Read,
    links: Option<Loaded>,
    cache: &EdgeCache,
    domains: &Domains,
) -> io::Result<(Rev, u64)> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut magic = [0; MAGIC.len()];
    file.read_exact(&mut magic)?;
    if &magic != MAGIC {
        return Err(wrong("another form"));
    }
    let Frame::Head { epoch, applied, rules_as_of, domains: known, withheld } = read_frame(&mut file)? else {
        return Err(wrong("no head"));
    };
    let as_of = applied;
    let mut rules = Sources { as_of: rules_as_of, ..Sources::default() };
    let mut frame = read_frame(&mut file)?;
    while let Frame::Rules(set) = frame {
        rules.sets.insert(set.account, set);
        frame = read_frame(&mut file)?;
    }
    // What both hold: events bring the rest to the older one, and change nothing in the newer.
    let links = links.filter(|links| links.epoch == epoch);
    let applied = links.as_ref().map_or(applied, |links| links.applied.min(applied));
    let (booting, mut count) = (cache.prepare(&epoch, applied, &rules), 0);
    if let Some(links) = links {
        booting.adopt(links);
    }
    while let Frame::Entry(key, rev, as_of, value) = frame {
        booting.restore(Kept { key, rev, as_of, value });
        count += 1;
        frame = read_frame(&mut file)?;
    }
    let Frame::End { entries } = frame else { return Err(wrong("frames out of order")) };
    if entries != count || file.read(&mut [0])? != 0 {
        return Err(wrong("another number of entries"));
    }
    domains.replace(as_of, &known, Some(&withheld));
    cache.boot(booting);
    Ok((applied, entries))
}

fn read_frame(file: &mut impl Read) -> io::Result<Frame> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let (mut length, mut sum) = ([0; 4], [0; 4]);
    file.read_exact(&mut length)?;
    file.read_exact(&mut sum)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(wrong("a frame is too long"));
    }
    let mut body = Vec::new();
    file.take(length as u64).read_to_end(&mut body)?;
    if body.len() != length || crc32c::crc32c(&body) != u32::from_le_bytes(sum) {
        return Err(wrong("a checksum does not fit"));
    }
    serde_json::from_slice(&body).map_err(io::Error::other)
}

/// Saves the state at each interval until `stop`, and once more then.
pub(crate) async fn keep(
    folder: PathBuf,
    limits: DiskLimits,
    cache: Arc<EdgeCache>,
    domains: Arc<Domains>,
    stop: CancellationToken,
) {
    let write = async |bytes_per_second: Option<u64>, stop: CancellationToken| {
        let (cache, domains, folder) = (cache.clone(), domains.clone(), folder.clone());
        let write = move || {
            let Some(holding) = cache.holding() else { return Ok(None) };
            let throttle = Throttle { bytes_per_second, begun: Instant::now(), stop };
            // After the position was read: everything up to it is in them.
            write_all(&folder, limits.bytes, &holding, &domains, &throttle).map(Some)
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(Some(Written { entries, left_out, bytes }))) => {
                tracing::debug!(entries, left_out, bytes, "what is held is on disk");
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => tracing::error!(%error, "the cache could not be saved"),
            Err(error) => tracing::error!(%error, "writing what is held panicked"),
        }
    };
    let mut last = None;
    loop {
        let slept = tokio::time::sleep(limits.interval);
        if stop.run_until_cancelled(slept).await.is_none() {
            break;
        }
        let now = (cache.position(), cache.size());
        if last.as_ref() != Some(&now) {
            write(Some(limits.bytes_per_second), stop.clone()).await;
            last = Some(now);
        }
    }
    write(None, CancellationToken::new()).await;
}

/// What became of one writing.
#[derive(Debug)]
struct Written {
    entries: u64,
    left_out: u64,
    bytes: u64,
}

/// How fast is written, and until when.
pub(crate) struct Throttle {
    /// Bytes a second; none is as fast as it goes.
    pub(crate) bytes_per_second: Option<u64>,
    /// When the writing began.
    pub(crate) begun: Instant,
    /// Ends it.
    pub(crate) stop: CancellationToken,
}

impl Throttle {
    /// Rests as long as it takes; an error when the edge stops.
    pub(crate) fn rest(&self, written: u64) -> io::Result<()> {
        if self.stop.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the edge stops"));
        }
        if let Some(rate) = self.bytes_per_second {
            let due = Duration::from_millis(written.saturating_mul(1_000) / rate.max(1));
            std::thread::sleep(due.saturating_sub(self.begun.elapsed()).min(Duration::from_secs(1)));
        }
        Ok(())
    }
}

fn write_all(
    folder: &Path,
    most: u64,
    holding: &Holding,
    domains: &Domains,
    throttle: &Throttle,
) -> io::Result<Written> {
    let (path, unfinished) = (folder.join("held"), folder.join("held.new"));
    let mut out = Out { file: BufWriter::with_capacity(256 << 10, File::create(&unfinished)?), bytes: 0 };
    out.file.write_all(MAGIC)?;
    let rules = holding.rules();
    out.put(&Frame::Head {
        epoch: holding.epoch.clone(),
        applied: holding.applied,
        rules_as_of: rules.as_of,
        domains: domains.all_with_files(MAX_FRAME / 2),
        withheld: domains.withheld(),
    })?;
    for set in rules.sets.into_values() {
        out.put(&Frame::Rules(set))?;
    }
    let (mut entries, mut left_out, mut rested, mut failed) = (0, 0, out.bytes, Ok(()));
    holding.walk(|Kept { key, rev, as_of, value }| {
        if out.bytes >= most {
            left_out += 1;
            return ControlFlow::Continue(());
        }
        failed = out.put(&Frame::Entry(key, rev, as_of, value));
        entries += 1;
        if failed.is_ok() && out.bytes >= rested + STEP {
            rested = out.bytes;
            failed = throttle.rest(out.bytes);
        }
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    failed?;
    out.put(&Frame::End { entries })?;
    let bytes = out.bytes;
    out.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&unfinished, &path)?;
    File::open(folder)?.sync_all()?;
    Ok(Written { entries, left_out, bytes })
}

struct Out {
    file: BufWriter<File>,
    bytes: u64,
}

impl Out {
    fn put(&mut self, frame: &Frame) -> io::Result<()> {
        let body = serde_json::to_vec(frame)?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&crc32c::crc32c(&body).to_le_bytes())?;
        self.file.write_all(&body)?;
        self.bytes += 8 + u64::from(length);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
