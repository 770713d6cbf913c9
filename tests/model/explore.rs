//! The model for the checker: bounds, actions, properties.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use stateright::{Model, Property};

use super::{
    edge::EventStep,
    extra::Extra,
    redis::View,
    replica::Replica,
    rule::Rule,
    truth::{KEYS, NONE, Value, is_poison},
    watch::{Broken, Request},
    world::{Action, Fault, Flight, Places, World},
};

/// One bounded piece of the space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) places: Places,
    pub(super) writes: u8,
    pub(super) faults: u8,
    /// The faults that may happen.
    pub(super) kinds: &'static [Fault],
    /// Keys whose fills take steps; those of others happen at once.
    pub(super) stepped: &'static [usize],
    /// Requests that may wait for one fill.
    pub(super) waiting: usize,
    /// Whether an event comes in by steps, with fills in between, two to a run.
    pub(super) fine: bool,
    /// Whether the edge writes to its disk.
    pub(super) disk: bool,
    /// What there is beside: see [`Extra`].
    pub(super) extra: Extra,
    /// What both keys hold at first: 1 for a value, 0 for nothing.
    pub(super) first: &'static [Value],
    /// What must have been seen at the end.
    pub(super) reaches: &'static [Seen],
}

/// What a run of the checker must meet, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Redis was ahead of the stream, and its view was taken.
    Ahead,
    /// A view that lagged was taken with the tail's help.
    Lifted,
    /// A view was rejected, and control's lookup was taken.
    LookedUp,
    /// A view without `meta`, or incomplete, was read.
    Unusable,
    /// Something stale was held.
    Stale,
    /// A fill began though an entry was there.
    Raced,
    /// An event met a higher floor than itself, and removed.
    Removed,
    /// A 404 from a fill was served.
    NotFound,
    /// A request was not content with the fill that it had joined.
    Late,
    /// A deposed publisher stepped down.
    SteppedDown,
    /// A rebuild ended.
    Rebuilt,
    /// Redis went back.
    RolledBack,
    /// The edge followed into another epoch.
    OtherEpoch,
    /// An entry from disk was served while nobody answered.
    FromDisk,
    /// An entry from disk waited after the contact, and was served when the edge had caught up.
    KeptFromDisk,
    /// A change was refused, and what was held stayed.
    Refused,
    /// A fill read what it could not use.
    Garbled,
    /// An edge began from the view, and served a fill before its first contact with control.
    FromView,
    /// `wait=edges` named the edge.
    Promised,
    /// `wait=edges` was answered without the edge, whose lease had run out.
    LeftOut,
    /// A heartbeat showed that a message was lost.
    LostTail,
    /// The full replica answered with a record, which is to be offered.
    Listed,
    /// Such a record became an entry.
    Kept,
    /// Such a record came too late.
    LateOffer,
    /// The full replica was read again.
    Paged,
}

/// The model: one scenario under one rule.
#[derive(Debug)]
pub(super) struct Push {
    pub(super) scenario: Scenario,
    pub(super) rule: Rule,
    seen: AtomicU32,
}

impl Push {
    pub(super) fn new(scenario: Scenario, rule: Rule) -> Self {
        Self { scenario, rule, seen: AtomicU32::new(0) }
    }

    /// What should have been met and was not.
    pub(super) fn missed(&self) -> Vec<Seen> {
        let seen = self.seen.load(Relaxed);
        self.scenario.reaches.iter().copied().filter(|what| seen & (1 << *what as u32) == 0).collect()
    }

    fn note(&self, what: Seen, met: bool) {
        if met && self.seen.load(Relaxed) & (1 << what as u32) == 0 {
            self.seen.fetch_or(1 << what as u32, Relaxed);
        }
    }

    /// Notes what a step showed.
    fn watch(&self, before: &World, action: Action, after: &World) {
        let landed = |key: u8| matches!(after.flights[usize::from(key)], Flight::Landed { .. });
        match action {
            Action::Offer { key } => {
                if let Flight::Read(view) = before.flights[usize::from(key)] {
                    self.note(Seen::Ahead, landed(key) && view.wm > before.cache.applied);
                }
            }
            Action::Read { key } => {
                let unusable = |view: View| view.epoch == NONE || !view.complete;
                let read = after.flights[usize::from(key)];
                self.note(Seen::Unusable, matches!(read, Flight::Read(view) if unusable(view)));
                self.note(Seen::Garbled, matches!(read, Flight::Read(view) if is_poison(view.value)));
            }
            Action::Lift { key } => {
                let read = after.flights[usize::from(key)];
                self.note(Seen::Lifted, matches!(read, Flight::Read(_)));
            }
            Action::Lookup { .. } => self.note(Seen::LookedUp, true),
            Action::Land { key } => {
                if let Flight::Landed { as_of, value, .. } = before.flights[usize::from(key)] {
                    self.note(Seen::NotFound, value == 0);
                    let late = |request: &Request| request.key == key && request.floor > as_of;
                    self.note(Seen::Late, before.requests.iter().any(late));
                }
            }
            Action::Apply | Action::Event(EventStep::Enter) => {
                let rev = after.cache.applied;
                let write = after.control.now().write(rev);
                let stays = after.cache.entries[usize::from(write.key)].rev > 0;
                self.note(Seen::Refused, is_poison(write.value) && action == Action::Apply && stays);
                let gone =
                    |key: usize| before.cache.entries[key].rev > 0 && after.cache.entries[key].rev == 0;
                self.note(Seen::Removed, (0..KEYS).any(gone));
                let kept = |key| {
                    let held = |world: &World| world.cache.held(&self.rule, key);
                    held(before).is_none() && held(after).is_some()
                };
                let caught_up = before.cache.booting && !after.cache.booting;
                self.note(Seen::KeptFromDisk, caught_up && (0..KEYS).any(kept));
            }
            Action::Publish { publisher, shard } => {
                let number = usize::from(publisher);
                let stood = before.publishers[number].term > 0;
                self.note(Seen::SteppedDown, stood && after.publishers[number].term == 0);
                let shard = usize::from(shard);
                self.note(Seen::Rebuilt, after.shards[shard].complete && !before.shards[shard].complete);
            }
            Action::Failover => self.note(Seen::RolledBack, true),
            Action::Welcome { .. } => {
                self.note(Seen::OtherEpoch, before.cache.epoch == 0 && after.cache.epoch == 1);
            }
            Action::Ask { key } | Action::Fill { key } => {
                self.note(Seen::Listed, before.offered.is_none() && after.offered.is_some());
                let entry = before.cache.entries[usize::from(key)];
                let is_filled = before.cache.alone && entry.rev == 0;
                self.note(Seen::FromView, is_filled && after.cache.entries[usize::from(key)].rev > 0);
                match before.cache.held(&self.rule, usize::from(key)) {
                    Some(_) if before.cache.alone => self.note(Seen::FromDisk, true),
                    Some(_) => {}
                    None => self.note(Seen::Stale, entry.rev > 0),
                }
            }
            Action::Keep => {
                let entry = |world: &World| world.cache.entries[0];
                self.note(Seen::Kept, entry(before) != entry(after));
                self.note(Seen::LateOffer, entry(before).rev == 0 && entry(after).rev == 0);
            }
            Action::TakePages => {
                self.note(Seen::Paged, after.cache.replica.is_some_and(|replica| replica.is_read));
            }
            Action::Miss { .. } => self.note(Seen::Raced, true),
            Action::Wait => {
                self.note(Seen::Promised, after.lease.promised > before.lease.promised);
            }
            Action::Expire => self.note(Seen::LeftOut, after.control.now().head > after.cache.applied),
            Action::Beat => self.note(Seen::LostTail, after.link.welcome.is_some()),
            Action::Write { .. }
            | Action::Poison { .. }
            | Action::BootFromView
            | Action::Ack
            | Action::Dial
            | Action::ReadPages
            | Action::Event(EventStep::Tail | EventStep::Table | EventStep::Done)
            | Action::Stray { .. }
            | Action::GiveUp { .. }
            | Action::Evict { .. }
            | Action::Save
            | Action::Saved
            | Action::Fault(_) => {}
        }
    }

    fn flight_actions(&self, world: &World, key: u8, actions: &mut Vec<Action>) {
        let number = usize::from(key);
        if !self.scenario.stepped.contains(&number) {
            actions.push(Action::Fill { key });
            return;
        }
        let waiting = world.requests.iter().filter(|request| request.key == key).count();
        if waiting < self.scenario.waiting {
            actions.push(Action::Ask { key });
            let raced =
                world.flights[number] == Flight::Idle && world.cache.held(&self.rule, number).is_some();
            actions.extend(raced.then_some(Action::Miss { key }));
        }
        match world.flights[number] {
            Flight::Idle => {}
            Flight::Started => actions.extend([Action::Read { key }, Action::GiveUp { key }]),
            Flight::Read(_) => actions.push(Action::Offer { key }),
            Flight::Lagging(_) => actions.push(Action::Lift { key }),
            Flight::Rejected => {
                actions.extend([Action::Read { key }, Action::Lookup { key }, Action::GiveUp { key }]);
            }
            Flight::Landed { .. } => actions.push(Action::Land { key }),
        }
    }

    fn stream_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let cache = &world.cache;
        if cache.is_busy() {
            actions.extend(EventStep::ALL.map(Action::Event));
            return;
        }
        if world.link.welcome.is_some() {
            actions.extend([Action::Welcome { snapshot: false }, Action::Welcome { snapshot: true }]);
        } else if world.link.epoch != world.control.epoch {
            // The stream is cut, or ends because control sees another epoch.
            actions.push(Action::Dial);
        }
        if world.link.epoch != NONE && world.link.epoch == cache.epoch && !world.lease.is_lossy {
            actions.push(if self.scenario.fine { Action::Event(EventStep::Tail) } else { Action::Apply });
            if !self.rule.gaps_are_refused {
                let head = world.control.log(world.link.epoch).head;
                actions.extend((cache.applied + 2..=head).map(|rev| Action::Stray { rev }));
            }
        }
    }
}

fn is_intact(world: &World, broken: Broken) -> bool {
    world.watch.broken != Some(broken)
}

impl Model for Push {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let Scenario { places, writes, faults, first, extra, .. } = self.scenario;
        let world = |first: &Value| {
            let mut world = World::new(*first, &places, writes, faults);
            world.cache.replica = (extra == Extra::Replica).then(|| Replica::whole([*first; KEYS], 1));
            world
        };
        first.iter().map(world).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let Scenario { places, writes, kinds, disk, extra, .. } = self.scenario;
        if world.watch.broken.is_some() {
            // The path is reported; what follows does not matter.
            return;
        }
        for key in 0..KEYS as u8 {
            // Keys are alike until the first write, so that may be of key 0.
            if world.writes_left > 0 && (key == 0 || world.writes_left < writes) {
                actions.extend([true, false].map(|put| Action::Write { key, put }));
            }
            if world.cache.entries[usize::from(key)].rev > 0 {
                actions.push(Action::Evict { key });
            }
            self.flight_actions(world, key, actions);
        }
        for publisher in 0..2 {
            if world.publishers[usize::from(publisher)].term > 0 {
                let shards = 0..places.shards.len() as u8;
                actions.extend(shards.map(|shard| Action::Publish { publisher, shard }));
            }
        }
        if world.copy.is_some() {
            actions.push(Action::Failover);
        }
        self.stream_actions(world, actions);
        extra.actions(world, actions);
        if disk {
            if world.saving.is_some() {
                actions.push(Action::Saved);
            } else if world.disk.is_none() && world.cache.epoch != NONE {
                actions.push(Action::Save);
            }
        }
        if world.faults_left > 0 {
            actions
                .extend(kinds.iter().filter(|kind| can_fail(world, **kind)).map(|kind| Action::Fault(*kind)));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let next = world.step(&self.rule, &self.scenario.places, action)?;
        self.watch(world, action, &next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I2: applied grows by one link at a time", |_, world| {
                is_intact(world, Broken::I2)
            }),
            Property::always("I3: nothing held is older than applied", |model: &Self, world: &World| {
                let log = |epoch| world.control.log(epoch);
                let true_since = |key: usize| {
                    world.cache.held(&model.rule, key).is_none_or(|entry| {
                        log(world.cache.epoch).when(world.cache.applied, key, entry.value).is_some()
                    })
                };
                // In the midst of a run the entries are ahead of `applied` one by one.
                world.cache.epoch == NONE || (0..KEYS).all(true_since)
            }),
            Property::always("I3: no answer is older than the ack", |_, world| is_intact(world, Broken::I3)),
            Property::always("I5: a deleted id is not served after the ack", |_, world| {
                is_intact(world, Broken::I5)
            }),
            Property::always("I6: reads never go back", |_, world| is_intact(world, Broken::I6)),
            Property::always("I7: 404 is verified", |_, world| is_intact(world, Broken::I7)),
            Property::always("wait=edges names only an edge that has it", |_, world: &World| {
                world.lease.promised <= world.watch.acked()
            }),
            Property::always("LIVE means everything up to the heartbeat", |_, world: &World| {
                world.lease.live <= world.cache.applied
            }),
            Property::always("floors are over entries", |model: &Self, world: &World| {
                model.rule.taking != super::rule::Taking::Floors
                    || !model.rule.negatives_raise
                    || world.cache.floors_hold(&model.scenario.places.slots)
            }),
        ]
    }
}

fn can_fail(world: &World, fault: Fault) -> bool {
    let idle = !world.cache.is_busy();
    match fault {
        Fault::Cut => idle && world.link.epoch != NONE,
        Fault::Resync => idle && world.link.epoch != NONE && world.link.welcome.is_none(),
        Fault::Flush(shard) => world.shards[usize::from(shard)].epoch != NONE,
        Fault::Copy(_) => world.copy.is_none(),
        Fault::Depose => world.publishers[1].term == 0 && world.publishers[0].term == 1,
        Fault::Restore(back) => world.control.epoch == 0 && world.control.now().head > back,
        Fault::Crash => true,
        Fault::Lose => idle && world.link.epoch == world.cache.epoch && !world.lease.is_lossy,
    }
}
