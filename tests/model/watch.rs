//! The promises of the edge, and the invariants that its answers are checked against.

use super::{
    edge::Cache,
    truth::{Control, KEYS, NONE, Value},
};

/// An invariant of `edge/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Broken {
    /// `applied` fell, or skipped a revision.
    I2,
    /// An answer is older than what was applied.
    I3,
    /// A deleted id was served after the ack.
    I5,
    /// A read went back behind another read.
    I6,
    /// A key that is there was answered with 404, or one that came back stayed away.
    I7,
}

/// A client's question that waits for a fill; key [`NONE`] is an empty place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Request {
    pub(super) key: u8,
    /// The epoch in which the edge was when it came.
    pub(super) epoch: u8,
    /// The floor of the key when it came.
    pub(super) floor: u8,
    /// What was acknowledged when it came.
    acked: u8,
    /// What was served of this key when it came.
    served: u8,
}

impl Request {
    pub(super) const NONE: Self = Self { key: NONE, epoch: NONE, floor: 0, acked: 0, served: 0 };
}

/// The promises, which outlive the edge's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    epoch: u8,
    acked: u8,
    served: [u8; KEYS],
    /// What was served since a boot, until the edge had caught up: the exception to I6 knows only this.
    alone: [u8; KEYS],
    pub(super) broken: Option<Broken>,
}

impl Watch {
    pub(super) const NEW: Self =
        Self { epoch: 0, acked: 1, served: [0; KEYS], alone: [0; KEYS], broken: None };

    /// The newest revision that the edge may be held to.
    pub(super) fn acked(&self) -> u8 {
        self.acked
    }

    /// A client asks: what it may expect is what holds now.
    pub(super) fn ask(&self, cache: &Cache, key: usize, floor: u8) -> Request {
        let (acked, served) =
            if cache.alone { (cache.applied, self.alone[key]) } else { (self.acked, self.served[key]) };
        // Keys are few.
        Request { key: key as u8, epoch: cache.epoch, floor, acked, served }
    }

    /// A client is answered.
    pub(super) fn answer(&mut self, control: &Control, cache: &Cache, request: &Request, value: Value) {
        let (log, key) = (control.log(request.epoch), usize::from(request.key));
        match log.when(request.acked.max(request.served), key, value) {
            Some(rev) => {
                if cache.booting && request.epoch == cache.epoch {
                    self.alone[key] = rev.max(self.alone[key]);
                }
                if !cache.alone && self.epoch == request.epoch {
                    self.served[key] = rev.max(self.served[key]);
                }
            }
            None => {
                let broken = if log.when(request.acked, key, value).is_some() {
                    Broken::I6
                } else if value == 0 {
                    Broken::I7
                } else if log.at(request.acked, key) == 0 {
                    Broken::I5
                } else {
                    Broken::I3
                };
                self.broken.get_or_insert(broken);
            }
        }
    }

    /// The edge was in contact with control, or applied something.
    pub(super) fn follow(&mut self, before: &Cache, after: &Cache) {
        if after.alone {
            return;
        }
        if self.epoch == after.epoch {
            if before.epoch == after.epoch && after.applied < before.applied {
                self.broken.get_or_insert(Broken::I2);
            }
            self.acked = after.applied.max(self.acked);
        } else {
            (self.epoch, self.acked, self.served) = (after.epoch, after.applied, [0; KEYS]);
        }
        for (served, alone) in self.served.iter_mut().zip(self.alone) {
            if before.alone && before.epoch == after.epoch {
                *served = alone.max(*served);
            }
        }
        if !after.booting || before.epoch != after.epoch {
            self.alone = [0; KEYS];
        }
    }

    /// The edge's process is gone.
    pub(super) fn crash(&mut self) {
        self.alone = [0; KEYS];
    }
}
