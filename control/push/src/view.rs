//! The Redis view as its publisher knows it: each shard's metadata, and one atomic update for all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::future::{join_all, try_join_all};
use redis::{RedisError, RedisResult, Script};
use shared::{
    id::AccountId,
    redirect::{Redirect, RedirectKey},
    rules::AccountRules,
    short_url::ShortDomain,
    wire::{
        stream::{Change, Epoch, Event, Rev},
        view::{Meta, Record, Setup, meta_key, record_key, setup_key, shard_of},
    },
    withheld::Withheld,
};

use super::{link::Link, scripts};

/// Why a view could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ViewError {
    /// Redis does not answer, or refuses.
    #[error("Redis: {0}")]
    Redis(#[from] RedisError),
    /// The view is not what this publisher left: somebody else wrote, or it was lost or rolled back.
    #[error("the view is not as it was left")]
    Refused,
    /// The change of this revision is of a newer release: without its key the view would be wrong.
    #[error("the change of revision {0} cannot be read by this release")]
    Unreadable(Rev),
    /// A value could not be written as JSON.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// One key of the view, to be set or, without a value, removed.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) shard: u16,
    pub(super) rev: Rev,
    pub(super) key: String,
    pub(super) value: Vec<u8>,
}

impl Write {
    /// The write of a redirection, or of its absence.
    pub(super) fn of(
        shards: u16,
        rev: Rev,
        key: &RedirectKey,
        value: Option<&Arc<Redirect>>,
    ) -> Result<Self, serde_json::Error> {
        let shard = shard_of(key, shards);
        let value = match value {
            Some(value) => serde_json::to_vec(&Record { rev, value: value.clone() })?,
            None => Vec::new(),
        };
        Ok(Self { shard, rev, key: record_key(shard, key), value })
    }

    /// Bytes of key and value.
    pub(super) fn size_bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }
}

/// Domains, rules and what is withheld, as of a revision.
#[derive(Debug, Default)]
pub(super) struct SetupBook {
    domains: BTreeMap<String, ShortDomain>,
    rules: BTreeMap<AccountId, Arc<AccountRules>>,
    withheld: BTreeSet<Withheld>,
}

impl From<Setup> for SetupBook {
    fn from(setup: Setup) -> Self {
        Self {
            domains: setup.domains.into_iter().map(|d| (d.host.as_str().to_owned(), d)).collect(),
            rules: setup.rules.into_iter().map(|rules| (rules.account, rules)).collect(),
            withheld: setup.withheld.into_iter().flatten().collect(),
        }
    }
}

impl SetupBook {
    fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Setup {
            domains: self.domains.values().cloned().collect(),
            rules: self.rules.values().cloned().collect(),
            withheld: Some(self.withheld.iter().cloned().collect()),
        })
    }
}

/// The writes of a run of events; afterwards everything up to `last` is in the view.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) last: Rev,
    writes: Vec<Write>,
    /// The setup after the batch and the revision that changed it last.
    setup: Option<(Rev, Vec<u8>)>,
}

impl Batch {
    /// Takes events from the front, as many as fit into `limit_bytes` and at least one.
    ///
    /// `book` is as of `book_rev` and moves on with the batch.
    pub(super) fn take(
        events: &mut std::collections::VecDeque<Event>,
        book: &mut SetupBook,
        book_rev: Rev,
        shards: u16,
        limit_bytes: usize,
    ) -> Result<Option<Self>, ViewError> {
        let Some(first) = events.front() else { return Ok(None) };
        let (mut batch, mut size, mut setup_rev) =
            (Self { last: first.rev, writes: Vec::new(), setup: None }, 0, None);
        while let Some(event) = events.front() {
            let rev = event.rev;
            match &event.change {
                Change::Redirect(key, value) => {
                    let write = Write::of(shards, rev, key, value.as_ref())?;
                    size += write.size_bytes();
                    if size > limit_bytes && !batch.writes.is_empty() {
                        break;
                    }
                    batch.writes.push(write);
                }
                // The shard of domains and rules may be ahead of other shards, never behind them.
                Change::Domain(_) | Change::Rules(_) | Change::Withhold(..) if rev <= book_rev => {}
                Change::Domain(domain) => {
                    if domain.removed {
                        book.domains.remove(domain.host.as_str());
                    } else {
                        // Pages stay out of the view, which is written as a whole; edges have them from control.
                        let domain = ShortDomain { pages: None, ..domain.clone() };
                        book.domains.insert(domain.host.as_str().to_owned(), domain);
                    }
                    setup_rev = Some(rev);
                }
                Change::Rules(rules) => {
                    if rules.lists.is_empty() {
                        book.rules.remove(&rules.account);
                    } else {
                        book.rules.insert(rules.account, rules.clone());
                    }
                    setup_rev = Some(rev);
                }
                Change::Withhold(what, is_withheld) => {
                    if *is_withheld {
                        book.withheld.insert(what.clone());
                    } else {
                        book.withheld.remove(what);
                    }
                    setup_rev = Some(rev);
                }
                // Edges have them from control alone.
                Change::Certificate(..) | Change::Challenge(_) => {}
                Change::Unreadable(_) => {
                    // What stands before it is written; the next batch begins with it.
                    if batch.writes.is_empty() && setup_rev.is_none() && batch.last == rev {
                        return Err(ViewError::Unreadable(rev));
                    }
                    break;
                }
            }
            batch.last = rev;
            events.pop_front();
        }
        if let Some(rev) = setup_rev {
            batch.setup = Some((rev, book.to_json()?));
        }
        Ok(Some(batch))
    }

    /// How many keys it writes.
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }
}

/// The scripts, with their hashes.
pub(super) struct Scripts {
    pub(super) advance: Script,
    pub(super) claim: Script,
    pub(super) clear: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            advance: Script::new(scripts::ADVANCE),
            claim: Script::new(scripts::CLAIM),
            clear: Script::new(scripts::CLEAR),
        }
    }
}

/// The view behind a connection.
pub(super) struct View {
    pub(super) link: Link,
    pub(super) scripts: Arc<Scripts>,
    pub(super) shards: u16,
    /// The meta of each shard; `None` where it is missing or unreadable.
    metas: Vec<Option<Meta>>,
}

impl View {
    /// Reads the present state of a view.
    pub(super) async fn open(link: Link, shards: u16) -> RedisResult<Self> {
        let mut view = Self { link, scripts: Arc::default(), shards, metas: Vec::new() };
        view.reload().await?;
        Ok(view)
    }

    /// Reads the metas again.
    pub(super) async fn reload(&mut self) -> RedisResult<()> {
        self.metas = self.load_metas(0..self.shards).await?;
        Ok(())
    }

    /// The metas of some shards.
    pub(super) async fn load_metas(
        &self,
        shards: impl Iterator<Item = u16>,
    ) -> RedisResult<Vec<Option<Meta>>> {
        let reads = shards.map(|shard| async move {
            let mut get = redis::cmd("GET");
            get.arg(meta_key(shard));
            let text: Option<String> = self.link.query(&get).await?;
            Ok(text.and_then(|text| text.parse().ok()))
        });
        try_join_all(reads).await
    }

    /// Whether Redis still has the state that this publisher left.
    pub(super) async fn is_as_left(&self) -> RedisResult<bool> {
        Ok(self.load_metas(0..self.shards).await? == self.metas)
    }

    /// The highest term that wrote a shard.
    pub(super) fn highest_term(&self) -> u64 {
        self.metas.iter().flatten().map(|meta| meta.term).max().unwrap_or(0)
    }

    /// Everything up to this revision is in every shard.
    pub(super) fn cursor(&self) -> Rev {
        self.watermarks().into_iter().min().unwrap_or(0)
    }

    /// The watermark of each shard.
    pub(super) fn watermarks(&self) -> Vec<Rev> {
        self.metas.iter().map(|meta| meta.as_ref().map_or(0, |meta| meta.watermark)).collect()
    }

    /// Why the view cannot be carried on from where it is; `known` is what each shard is known to have had.
    pub(super) fn find_fault(
        &self,
        epoch: &Epoch,
        compacted: Rev,
        head: Rev,
        known: &[Rev],
    ) -> Option<&'static str> {
        for (shard, meta) in self.metas.iter().enumerate() {
            let Some(meta) = meta else { return Some("a shard is empty") };
            let fault = if meta.epoch != *epoch {
                "it is of another history"
            } else if meta.shards != self.shards {
                "it is cut into other shards"
            } else if !meta.complete {
                "it is incomplete"
            } else if known.get(shard).is_some_and(|known| meta.watermark < *known) {
                "it was rolled back"
            } else if meta.watermark > head {
                "it is ahead of the log"
            } else if meta.watermark < compacted {
                "the log no longer reaches back to it"
            } else {
                continue;
            };
            return Some(fault);
        }
        None
    }

    /// Domains, rules and what is withheld as of shard 0; `None` when they are missing, cannot be read, or are of an older
    /// release, which did not write what is withheld.
    pub(super) async fn load_setup(&self) -> RedisResult<Option<(Rev, SetupBook)>> {
        let mut get = redis::cmd("MGET");
        get.arg(meta_key(0)).arg(setup_key());
        let (meta, setup): (Option<String>, Option<Vec<u8>>) = self.link.query(&get).await?;
        // Another meta than the one just read is noticed by the first write.
        let (Some(Ok(meta)), Some(setup)) = (meta.map(|text| text.parse::<Meta>()), setup) else {
            return Ok(None);
        };
        let setup = serde_json::from_slice::<Setup>(&setup).ok().filter(|setup| setup.withheld.is_some());
        Ok(setup.map(|setup| (meta.watermark, setup.into())))
    }

    /// Writes a batch under `term`: every shard moves on to its last revision.
    ///
    /// Without a batch every shard stays where it is and takes the term, which fences off all lower ones.
    pub(super) async fn advance(&mut self, term: u64, batch: Option<&Batch>) -> Result<(), ViewError> {
        let view = &*self;
        let steps = view.metas.iter().zip(0_u16..).map(|(meta, shard)| {
            let meta = meta.as_ref();
            async move {
                let Some(old) = meta else { return Err(ViewError::Refused) };
                let new = Meta {
                    term,
                    watermark: batch.map_or(old.watermark, |batch| batch.last.max(old.watermark)),
                    ..old.clone()
                };
                if new == *old {
                    return Ok(new);
                }
                let mut keys = vec![meta_key(shard)];
                let mut values = vec![old.to_string().into_bytes(), new.to_string().into_bytes()];
                if let Some(batch) = batch {
                    let mine = |write: &&Write| write.shard == shard && write.rev > old.watermark;
                    for write in batch.writes.iter().filter(mine) {
                        keys.push(write.key.clone());
                        values.push(write.value.clone());
                    }
                    if let Some((_, setup)) =
                        batch.setup.as_ref().filter(|(rev, _)| shard == 0 && *rev > old.watermark)
                    {
                        keys.push(setup_key());
                        values.push(setup.clone());
                    }
                }
                let said: String =
                    view.link.run(&view.scripts.advance, scripts::ADVANCE, &keys, &values).await?;
                if said == new.to_string() { Ok(new) } else { Err(ViewError::Refused) }
            }
        });
        let results = join_all(steps).await;
        let mut failed = None;
        for (slot, result) in self.metas.iter_mut().zip(results) {
            match result {
                Ok(meta) => *slot = Some(meta),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Adopts the result of a finished rebuild.
    pub(super) fn set_rebuilt(&mut self, meta: &Meta) {
        self.metas = vec![Some(meta.clone()); usize::from(self.shards)];
    }
}
