//! What control takes of scans.

use std::sync::Arc;

use edge::backing::BackingError;
use shared::{
    redirect::{Redirect, RedirectKey},
    wire::{
        limits::LimitReport,
        scan::{ScanBatch, ScanReceipt},
        stream::Change,
        unknown::UnknownReport,
    },
};

use super::{Control, down};

impl Control {
    /// Whether scans are taken as they lie on the disk.
    pub(crate) fn takes_spooled(&self) -> bool {
        !self.state().faults.takes_only_json
    }

    /// Notes how a batch came.
    pub(crate) fn note_form(&self, is_spooled: bool) {
        self.state().spooled.push(is_spooled);
    }

    /// How each batch came that was taken: as it lay on the disk, or else as JSON.
    pub(crate) fn spooled(&self) -> Vec<bool> {
        self.state().spooled.clone()
    }

    /// Stores a batch behind the boot's cursor.
    pub(crate) fn take_scans(&self, batch: &ScanBatch) -> Result<ScanReceipt, BackingError> {
        let mut state = self.state();
        if state.faults.is_down || state.faults.refuses_scans {
            return Err(down());
        }
        let cursor = *state.cursors.entry(batch.boot).or_default();
        for (seq, record) in (batch.first_seq..).zip(&batch.records).filter(|(seq, _)| *seq >= cursor) {
            state.scans.push((batch.boot, seq, record.clone()));
            state.cursors.insert(batch.boot, seq + 1);
        }
        let next_seq = state.cursors[&batch.boot];
        if state.faults.lost_receipts > 0 {
            state.faults.lost_receipts -= 1;
            return Err(down());
        }
        Ok(ScanReceipt { next_seq })
    }

    /// Every report of unknown ids that came, repeats too.
    pub(crate) fn reports(&self) -> Vec<UnknownReport> {
        self.state().reports.clone()
    }

    /// Puts what an edge counted into the records of its links, as control does.
    pub(super) fn take_limits(&self, report: &LimitReport) -> Result<(), BackingError> {
        let view = {
            let state = self.state();
            if state.faults.is_down {
                return Err(down());
            }
            state.view(state.head())
        };
        let mut changes = Vec::new();
        for said in &report.counts {
            let key = RedirectKey::new(&said.domain, &said.folded);
            let Some((_, link)) = view.get(&key) else { continue };
            let mut link = Redirect::clone(link);
            let Some(availability) = &mut link.availability else { continue };
            let scans = availability.scans.entry(report.edge.clone()).or_default();
            if said.scans > *scans {
                *scans = said.scans;
                changes.push(Change::Redirect(key, Some(Arc::new(link))));
            }
        }
        self.commit(changes);
        Ok(())
    }

    pub(super) fn take_report(&self, report: &UnknownReport) -> Result<(), BackingError> {
        let mut state = self.state();
        if state.faults.is_down {
            return Err(down());
        }
        state.reports.push(report.clone());
        if state.faults.lost_reports > 0 {
            state.faults.lost_reports -= 1;
            return Err(down());
        }
        Ok(())
    }
}
