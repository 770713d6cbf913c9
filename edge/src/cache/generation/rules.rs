//! The rules of every account, of the same revision as the entries.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
};

use shared::{id::AccountId, rules::AccountRules, wire::stream::Rev};

use super::Generation;
use crate::rules::{self, RuleSet, RuleTable};

/// The rules of every account as they were sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// Every change up to this revision is in them.
    pub(crate) as_of: Rev,
    /// By account.
    pub(crate) sets: BTreeMap<AccountId, Arc<AccountRules>>,
}

impl Generation {
    /// Calls `look` with the rules of an account; `None` without a search as long as no account has some.
    pub(in crate::cache) fn with_rules<R>(
        &self,
        account: &AccountId,
        look: impl FnOnce(&RuleSet) -> R,
    ) -> Option<R> {
        let table = self.rules.load();
        if table.is_empty() { None } else { table.get(account).map(|set| look(set)) }
    }

    /// Accounts of whose rules none can be used.
    pub(in crate::cache) fn refused_rules(&self) -> usize {
        self.rules.load().values().filter(|set| set.is_refused()).count()
    }

    /// Applies one change of an account's rules; a set that cannot be used is refused and leaves the old one in use.
    ///
    /// The disk gets the refused set all the same: an edge of a newer release that starts from it may be able to use it, and
    /// no event would bring it again.
    ///
    /// Only the one task that follows the stream calls this and [`Self::snapshot`].
    pub(in crate::cache) fn change_rules(&self, rev: Rev, sets: &AccountRules) -> Result<(), String> {
        self.pass(rev);
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if rev <= sources.as_of {
            // Rules from the disk or from a view were newer than what was applied.
            return Ok(());
        }
        let set = rules::read(sets);
        sources.as_of = rev;
        if let Ok(None) = set {
            sources.sets.remove(&sets.account);
        } else {
            sources.sets.insert(sets.account, Arc::new(sets.clone()));
        }
        drop(sources);
        let mut table = RuleTable::clone(&self.rules.load());
        let result = match set {
            Ok(Some(set)) => {
                table.insert(sets.account, Arc::new(set));
                Ok(())
            }
            Ok(None) => {
                table.remove(&sets.account);
                Ok(())
            }
            Err(reason) => {
                table.entry(sets.account).or_insert_with(|| Arc::new(RuleSet::refused()));
                Err(reason)
            }
        };
        self.rules.store(Arc::new(table));
        result
    }

    /// Keeps the rules of all accounts as they were sent, with the revision that they hold everything up to.
    pub(in crate::cache) fn keep_rules(&self, as_of: Rev, sets: &[Arc<AccountRules>]) {
        let sets = sets.iter().map(|set| (set.account, set.clone())).collect();
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if as_of >= sources.as_of {
            *sources = Sources { as_of, sets };
        }
    }

    /// The rules of all accounts as they were sent.
    pub(in crate::cache) fn sources(&self) -> Sources {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
