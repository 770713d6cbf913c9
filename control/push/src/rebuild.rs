//! Rebuilds a Redis view: claims it as incomplete, clears it, fills it from one snapshot of the database, completes it.
//!
//! Each step of a shard replaces its guard value, and the term belongs to this rebuild. So a step that was lost in a
//! failover, a flush in between and another publisher are noticed at once.

use futures_util::future::try_join_all;
use shared::wire::{
    stream::{Epoch, Rev},
    view::{MAX_SHARDS, Meta, Setup, meta_key, record_prefix, setup_key},
};

use super::{
    scripts,
    view::{View, ViewError, Write},
};

/// The key that guards a shard's rebuild; it stays, so that an old one cannot continue.
fn guard_key(shard: u16) -> String {
    format!("{{waymark:{shard}}}:rebuild")
}

struct Shard {
    number: u16,
    step: u64,
    /// Cursor of the removal and the server it belongs to; `None` when nothing is left to remove.
    clearing: Option<(String, String)>,
}

/// A rebuild under way.
pub(super) struct Rebuild<'v> {
    view: &'v View,
    meta: Meta,
    shards: Vec<Shard>,
}

impl<'v> Rebuild<'v> {
    /// Claims every shard under `term`, which must be unused: readers see that the view is incomplete.
    ///
    /// Shards of a view with another shard count are claimed too, and deleted at the end.
    pub(super) async fn claim(
        view: &'v View,
        term: u64,
        epoch: &Epoch,
        at_rev: Rev,
    ) -> Result<Self, ViewError> {
        let meta =
            Meta { epoch: epoch.clone(), term, watermark: at_rev, complete: false, shards: view.shards };
        let surplus = view.load_metas(view.shards..MAX_SHARDS).await?;
        let surplus = (view.shards..MAX_SHARDS).zip(surplus).filter(|(_, meta)| meta.is_some());
        let shards = (0..view.shards).chain(surplus.map(|(shard, _)| shard));
        let rebuild = Self {
            view,
            meta,
            shards: shards
                .map(|number| Shard { number, step: 0, clearing: Some(("0".to_owned(), String::new())) })
                .collect(),
        };
        let text = rebuild.meta.to_string();
        try_join_all(rebuild.shards.iter().map(|shard| async {
            let keys = [meta_key(shard.number), guard_key(shard.number)];
            let values = [term.to_string(), text.clone(), rebuild.guard(shard.step)].map(String::into_bytes);
            let said: String = view.link.run(&view.scripts.claim, scripts::CLAIM, &keys, &values).await?;
            if said == text { Ok(()) } else { Err(ViewError::Refused) }
        }))
        .await?;
        Ok(rebuild)
    }

    fn guard(&self, step: u64) -> String {
        format!("{} {step}", self.meta.term)
    }

    /// Removes some records of each shard; returns whether any may be left.
    pub(super) async fn clear_some(&mut self) -> Result<bool, ViewError> {
        let steps = self.shards.iter().map(|shard| async {
            let Some((cursor, server)) = &shard.clearing else { return Ok(None) };
            let pattern = format!("{}*", record_prefix(shard.number));
            let next = self.guard(shard.step + 1);
            let values =
                [self.guard(shard.step), next.clone(), pattern, cursor.clone()].map(String::into_bytes);
            let keys = [guard_key(shard.number)];
            let (guard, cursor, by): (String, String, String) =
                self.view.link.run(&self.view.scripts.clear, scripts::CLEAR, &keys, &values).await?;
            if guard != next {
                return Err(ViewError::Refused);
            }
            // A cursor that was lost, or belongs to another server, is useless.
            let is_lost = cursor.is_empty() || (*server != by && !server.is_empty());
            let clearing = match (is_lost, cursor.as_str()) {
                (true, _) => Some(("0".to_owned(), String::new())),
                (false, "0") => None,
                (false, _) => Some((cursor, by)),
            };
            Ok(Some((shard.step + 1, clearing)))
        });
        let results = try_join_all(steps).await?;
        for (shard, result) in self.shards.iter_mut().zip(results) {
            if let Some((step, clearing)) = result {
                (shard.step, shard.clearing) = (step, clearing);
            }
        }
        Ok(self.shards.iter().any(|shard| shard.clearing.is_some()))
    }

    /// Writes records.
    pub(super) async fn fill(&mut self, writes: Vec<Write>) -> Result<(), ViewError> {
        let mut parts = vec![(Vec::new(), Vec::new()); usize::from(self.view.shards)];
        for write in writes {
            if let Some((keys, values)) = parts.get_mut(usize::from(write.shard)) {
                keys.push(write.key);
                values.push(write.value);
            }
        }
        self.step(parts).await
    }

    /// Completes every shard and removes those that are no longer used.
    pub(super) async fn finish(mut self, setup: &Setup) -> Result<Meta, ViewError> {
        let complete = Meta { complete: true, ..self.meta.clone() };
        let text = complete.to_string().into_bytes();
        let parts = self
            .shards
            .iter()
            .map(|shard| match shard.number {
                0 => Ok((vec![setup_key(), meta_key(0)], vec![serde_json::to_vec(setup)?, text.clone()])),
                n if n < self.view.shards => Ok((vec![meta_key(n)], vec![text.clone()])),
                n => Ok((vec![meta_key(n)], vec![Vec::new()])),
            })
            .collect::<Result<Vec<_>, serde_json::Error>>()?;
        self.step(parts).await?;
        Ok(complete)
    }

    /// One guarded step of each shard that has something to write.
    async fn step(&mut self, parts: Vec<(Vec<String>, Vec<Vec<u8>>)>) -> Result<(), ViewError> {
        let rebuild = &*self;
        let steps = rebuild.shards.iter().zip(parts).map(|(shard, (keys, values))| async move {
            if keys.is_empty() {
                return Ok(shard.step);
            }
            let next = rebuild.guard(shard.step + 1);
            let all_keys: Vec<String> = std::iter::once(guard_key(shard.number)).chain(keys).collect();
            let guards = [rebuild.guard(shard.step), next.clone()].map(String::into_bytes);
            let values: Vec<Vec<u8>> = guards.into_iter().chain(values).collect();
            let (link, scripts) = (&rebuild.view.link, &rebuild.view.scripts);
            let said: String = link.run(&scripts.advance, scripts::ADVANCE, &all_keys, &values).await?;
            if said == next { Ok(shard.step + 1) } else { Err(ViewError::Refused) }
        });
        let results = try_join_all(steps).await?;
        for (shard, step) in self.shards.iter_mut().zip(results) {
            shard.step = step;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_key_has_the_shards_tag_and_is_no_record() {
        let tag = |text: &str| text.split('}').next().map(str::to_owned);
        assert_eq!(tag(&guard_key(7)), tag(&meta_key(7)));
        assert!(!guard_key(7).starts_with(&record_prefix(7)));
    }
}
