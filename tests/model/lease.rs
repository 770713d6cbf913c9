//! Heartbeats and leases: what control knows of the edge, and the edge's own state.

use super::{rule::Rule, world::World};

/// Both, in the one epoch of the scenarios that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    /// The newest revision that the edge acknowledged.
    told: u8,
    /// Whether the lease holds.
    is_valid: bool,
    /// The newest revision for which `wait=edges` has named the edge.
    pub(super) promised: u8,
    /// The head for which the edge has called itself live, on this connection.
    pub(super) live: u8,
    /// The stream lost events: only a heartbeat shows that.
    pub(super) is_lossy: bool,
}

impl Lease {
    pub(super) const NEW: Self = Self { told: 0, is_valid: true, promised: 0, live: 0, is_lossy: false };

    /// The connection, or the process of the edge, is gone.
    pub(super) fn cut(&mut self) {
        (self.live, self.is_lossy) = (0, false);
    }

    /// An acknowledgement arrives.
    pub(super) fn acknowledge(&mut self, rule: &Rule, applied: u8, sent: u8) {
        let told = if rule.acks_are_applied { applied } else { sent };
        (self.told, self.is_valid) = (told.max(self.told), true);
    }

    /// No message came for the time of a lease.
    pub(super) fn expire(&mut self) {
        self.is_valid = false;
    }

    /// `wait=edges` for the newest revision is answered, if it can be.
    pub(super) fn wait(&mut self, rule: &Rule, head: u8) {
        let has_it = self.is_valid && self.told >= head;
        if has_it || (!self.is_valid && !rule.expired_are_unreachable) {
            self.promised = head;
        }
    }

    /// A heartbeat arrives, behind everything that was sent; gives whether the edge asks again.
    pub(super) fn beat(&mut self, rule: &Rule, applied: u8, head: u8) -> bool {
        let is_behind = applied != head && rule.beats_tell_head;
        self.live = if is_behind { 0 } else { head };
        is_behind
    }
}

/// Whether a heartbeat may arrive: never before the events up to its head, unless those were lost.
pub(super) fn can_beat(world: &World) -> bool {
    let is_connected = world.link.epoch == world.cache.epoch && world.link.welcome.is_none();
    let is_behind_events = world.cache.applied == world.control.now().head || world.lease.is_lossy;
    is_connected && !world.cache.is_busy() && is_behind_events
}
