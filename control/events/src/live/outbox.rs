//! Outbound messages of one client, with a bound on unacknowledged messages of QoS 1.

use std::collections::HashSet;

/// Most messages of QoS 1 that one client has not acknowledged.
const MAX_IN_FLIGHT: u16 = 100;

/// The packet ids of messages that were sent and not acknowledged.
#[derive(Debug)]
pub(super) struct InFlight {
    ids: HashSet<u16>,
    last: u16,
    max: u16,
}

impl InFlight {
    /// Nothing in flight; `receive_maximum` is what the client accepts in flight.
    pub(super) fn new(receive_maximum: Option<u16>) -> Self {
        let max = receive_maximum.unwrap_or(u16::MAX).clamp(1, MAX_IN_FLIGHT);
        Self { ids: HashSet::new(), last: 0, max }
    }

    /// Whether another message of QoS 1 may go out.
    pub(super) fn has_room(&self) -> bool {
        self.ids.len() < usize::from(self.max)
    }

    /// The id of the next message.
    pub(super) fn take(&mut self) -> u16 {
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            // Fewer than 65,535 are in flight, so one is free.
            if self.ids.insert(self.last) {
                return self.last;
            }
        }
    }

    /// The client has it; an id that is not in flight is no fault.
    pub(super) fn acknowledge(&mut self, id: u16) {
        self.ids.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_ids_are_unused_and_bounded() {
        let mut all = InFlight::new(Some(2));
        assert_eq!((all.take(), all.has_room(), all.take(), all.has_room()), (1, true, 2, false));
        all.acknowledge(1);
        all.acknowledge(9);
        assert!(all.has_room());
        all.last = u16::MAX;
        assert_eq!(all.take(), 1);
        assert_eq!(InFlight::new(Some(0)).max, 1);
        assert_eq!(InFlight::new(None).max, MAX_IN_FLIGHT);
    }
}
