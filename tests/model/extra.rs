//! What only some scenarios have.

use super::{
    lease::can_beat,
    truth::NONE,
    world::{Action, World},
};

/// What a scenario has beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    /// Nothing.
    None,
    /// Changes that no edge can use.
    Poison,
    /// An edge that holds nothing begins from the view.
    ViewBoot,
    /// Acknowledgements, leases and heartbeats.
    Leases,
    /// An edge that holds every link, and asks for Digital Links.
    Replica,
}

impl Extra {
    /// The steps that come with it.
    pub(super) fn actions(self, world: &World, actions: &mut Vec<Action>) {
        match self {
            Self::None => {}
            Self::Poison => actions.extend((world.writes_left > 0).then_some(Action::Poison { key: 0 })),
            Self::ViewBoot => actions.extend(world.cache.alone.then_some(Action::BootFromView)),
            Self::Leases => {
                let is_connected = world.link.epoch != NONE && world.link.epoch == world.cache.epoch;
                actions.extend((is_connected && !world.cache.is_busy()).then_some(Action::Ack));
                actions.extend(can_beat(world).then_some(Action::Beat));
                actions.extend([Action::Expire, Action::Wait]);
            }
            Self::Replica => {
                actions.extend(world.offered.map(|_| Action::Keep));
                let unread = world.cache.replica.filter(|replica| !replica.is_read);
                actions.extend(unread.map(|replica| match replica.reading {
                    0 => Action::ReadPages,
                    _ => Action::TakePages,
                }));
            }
        }
    }
}
