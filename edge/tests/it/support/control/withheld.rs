//! What the control of the tests withholds.

use std::collections::BTreeSet;

use shared::{
    wire::stream::{Change, Rev},
    withheld::Withheld,
};

use super::{Control, State};

impl Control {
    /// What is withheld as of a revision.
    pub(crate) fn withheld(&self, rev: Rev) -> Vec<Withheld> {
        self.state().withheld(rev)
    }

    /// Withholds something from now on, or no longer.
    pub(crate) fn withhold(&self, what: Withheld, is_withheld: bool) -> Rev {
        self.commit([Change::Withhold(what, is_withheld)])
    }
}

impl State {
    /// What is withheld at a revision.
    pub(super) fn withheld(&self, rev: Rev) -> Vec<Withheld> {
        let mut all = BTreeSet::new();
        for event in self.log.iter().filter(|event| event.rev <= rev) {
            match &event.change {
                Change::Withhold(what, true) => drop(all.insert(what.clone())),
                Change::Withhold(what, false) => drop(all.remove(what)),
                Change::Redirect(..)
                | Change::Domain(_)
                | Change::Rules(_)
                | Change::Certificate(..)
                | Change::Challenge(_)
                | Change::Unreadable(_) => {}
            }
        }
        all.into_iter().collect()
    }
}
