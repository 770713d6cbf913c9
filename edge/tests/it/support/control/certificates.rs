//! Certificates and challenges of the control of the tests.

use std::{collections::BTreeMap, sync::Arc};

use shared::wire::{
    certificates::{Challenge, DomainCertificate},
    stream::{Change, Rev},
};

use super::{Control, State};

impl Control {
    /// Gives a host a certificate, or takes it away.
    pub(crate) fn certify(&self, host: &str, certificate: Option<DomainCertificate>) -> Rev {
        self.commit([Change::Certificate(host.into(), certificate.map(Arc::new))])
    }

    /// Says what an authority is about to check.
    pub(crate) fn challenge(&self, challenge: Challenge) -> Rev {
        self.commit([Change::Challenge(Arc::new(challenge))])
    }
}

impl State {
    /// The certificates at a revision; none if control is of a release before.
    pub(super) fn certificates(&self, rev: Rev) -> Vec<Arc<DomainCertificate>> {
        let mut all = BTreeMap::new();
        for event in self.log.iter().filter(|event| event.rev <= rev && !self.faults.is_older) {
            if let Change::Certificate(host, certificate) = &event.change {
                all.insert(host.clone(), certificate.clone());
            }
        }
        all.into_values().flatten().collect()
    }

    /// Every challenge of before a revision; edges know when each ends.
    pub(super) fn challenges(&self, rev: Rev) -> Vec<Arc<Challenge>> {
        let events = self.log.iter().filter(|event| event.rev <= rev);
        let of = |change: &Change| if let Change::Challenge(one) = change { Some(one.clone()) } else { None };
        events.filter_map(|event| of(&event.change)).collect()
    }
}
