//! The bounds within which the model is explored.

use super::{
    explore::{Scenario, Seen},
    extra::Extra,
    world::{Fault, Places},
};

const ONE_SHARD: Places = Places { slots: [0, 0], shards: &[&[0, 1]] };
const TWO_SHARDS: Places = Places { slots: [0, 0], shards: &[&[0], &[1]] };

/// Fills by steps, requests that join them, Redis that lags and runs ahead.
pub(super) const CORE: Scenario = Scenario {
    name: "core",
    places: ONE_SHARD,
    writes: 2,
    faults: 0,
    kinds: &[],
    stepped: &[0],
    waiting: 2,
    fine: false,
    disk: false,
    extra: Extra::None,
    first: &[1],
    reaches: &[
        Seen::Ahead,
        Seen::Lifted,
        Seen::LookedUp,
        Seen::Raced,
        Seen::Removed,
        Seen::NotFound,
        Seen::Late,
    ],
};

/// The same with a flush, or a snapshot.
pub(super) const FAULTS: Scenario = Scenario {
    name: "faults",
    writes: 1,
    faults: 2,
    kinds: &[Fault::Flush(0), Fault::Resync],
    waiting: 1,
    first: &[1, 0],
    reaches: &[Seen::Unusable, Seen::Stale, Seen::Rebuilt, Seen::Lifted, Seen::LookedUp],
    ..CORE
};

/// Events by steps: the tail, then floor and entry, then `applied`; two to a run, fills in between.
pub(super) const STEPS: Scenario = Scenario {
    name: "steps",
    waiting: 1,
    fine: true,
    reaches: &[Seen::Ahead, Seen::Lifted, Seen::LookedUp, Seen::Removed, Seen::NotFound],
    ..CORE
};

/// Redis as such: two shards, two publishers, copies that are older.
pub(super) const REDIS: Scenario = Scenario {
    name: "redis",
    places: TWO_SHARDS,
    writes: 1,
    faults: 2,
    kinds: &[Fault::Flush(0), Fault::Copy(0), Fault::Depose],
    stepped: &[],
    reaches: &[Seen::SteppedDown, Seen::Rebuilt, Seen::RolledBack],
    ..CORE
};

/// Two publishers, but no copies.
pub(super) const LEASE: Scenario = Scenario {
    name: "lease",
    kinds: &[Fault::Flush(0), Fault::Depose],
    reaches: &[Seen::SteppedDown],
    ..REDIS
};

/// Control is restored, or fails over, while fills and messages are under way.
pub(super) const EPOCHS: Scenario = Scenario {
    name: "epochs",
    faults: 1,
    kinds: &[Fault::Restore(0), Fault::Restore(1)],
    waiting: 1,
    reaches: &[Seen::OtherEpoch, Seen::Rebuilt, Seen::LookedUp],
    ..CORE
};

/// The same with fills at once.
pub(super) const EPOCHS_AT_ONCE: Scenario = Scenario {
    name: "epochs, fills at once",
    stepped: &[],
    reaches: &[Seen::OtherEpoch, Seen::Rebuilt],
    ..EPOCHS
};

/// The same with fills by steps, and one write.
pub(super) const EPOCHS_ONE_WRITE: Scenario = Scenario { name: "epochs, one write", writes: 1, ..EPOCHS };

/// The edge dies and boots from its disk, with control and without.
pub(super) const DISK: Scenario = Scenario {
    name: "disk",
    faults: 1,
    kinds: &[Fault::Crash, Fault::Cut],
    stepped: &[],
    disk: true,
    reaches: &[Seen::FromDisk, Seen::KeptFromDisk],
    ..CORE
};

/// The same with one write.
pub(super) const DISK_ONE_WRITE: Scenario =
    Scenario { name: "disk, one write", writes: 1, faults: 2, ..DISK };

/// The same, with a snapshot before the edge dies.
pub(super) const DISK_AND_SNAPSHOT: Scenario = Scenario {
    name: "disk and snapshot",
    writes: 1,
    faults: 2,
    kinds: &[Fault::Crash, Fault::Resync],
    reaches: &[Seen::FromDisk],
    ..DISK
};

/// Everything at once, with one write.
pub(super) const ALL: Scenario = Scenario {
    name: "all",
    places: TWO_SHARDS,
    writes: 1,
    faults: 1,
    kinds: &[Fault::Resync, Fault::Flush(0), Fault::Copy(0), Fault::Depose, Fault::Restore(0), Fault::Crash],
    stepped: &[],
    disk: true,
    reaches: &[Seen::Rebuilt, Seen::RolledBack, Seen::OtherEpoch, Seen::FromDisk],
    ..CORE
};

/// Changes that no edge can use: refused, in the view and at control.
pub(super) const POISONED: Scenario = Scenario {
    name: "poison",
    waiting: 1,
    extra: Extra::Poison,
    reaches: &[Seen::Refused, Seen::Garbled, Seen::Lifted],
    ..CORE
};

/// The edge dies without a disk, and begins from a view whose shards are not at the same revision.
pub(super) const VIEW_BOOT: Scenario = Scenario {
    name: "boot from the view",
    places: TWO_SHARDS,
    faults: 2,
    kinds: &[Fault::Crash, Fault::Copy(1), Fault::Cut],
    stepped: &[],
    extra: Extra::ViewBoot,
    reaches: &[Seen::FromView, Seen::RolledBack],
    ..CORE
};

/// The same with one write.
pub(super) const VIEW_BOOT_ONE_WRITE: Scenario =
    Scenario { name: "boot from the view, one write", writes: 1, ..VIEW_BOOT };

/// Acknowledgements, leases that run out, heartbeats and lost messages.
pub(super) const LEASES: Scenario = Scenario {
    name: "leases and heartbeats",
    faults: 2,
    kinds: &[Fault::Lose, Fault::Cut],
    stepped: &[],
    extra: Extra::Leases,
    reaches: &[Seen::Promised, Seen::LeftOut, Seen::LostTail],
    ..CORE
};

/// The same with one write.
pub(super) const LEASES_ONE_WRITE: Scenario =
    Scenario { name: "leases and heartbeats, one write", writes: 1, ..LEASES };

/// An edge that holds every link: its records are offered to the entries late, and the table follows them by a step of its own.
pub(super) const REPLICA: Scenario = Scenario {
    name: "replica",
    faults: 1,
    kinds: &[Fault::Cut, Fault::Resync],
    stepped: &[],
    fine: true,
    extra: Extra::Replica,
    reaches: &[Seen::Listed, Seen::Kept, Seen::LateOffer, Seen::Paged],
    ..CORE
};

const EVERYTHING: &[Fault] = &[
    Fault::Cut,
    Fault::Resync,
    Fault::Flush(0),
    Fault::Copy(0),
    Fault::Depose,
    Fault::Restore(0),
    Fault::Restore(1),
    Fault::Crash,
];

/// The wider bounds.
pub(super) const LONG: &[Scenario] = &[
    Scenario {
        name: "core, long",
        faults: 1,
        kinds: &[Fault::Flush(0), Fault::Resync],
        first: &[1, 0],
        ..CORE
    },
    Scenario {
        name: "faults, long",
        writes: 2,
        kinds: &[Fault::Flush(0), Fault::Copy(0), Fault::Resync],
        ..FAULTS
    },
    Scenario {
        name: "steps, long",
        faults: 1,
        kinds: &[Fault::Resync, Fault::Flush(0)],
        waiting: 2,
        ..STEPS
    },
    Scenario { name: "redis, long", writes: 2, ..REDIS },
    EPOCHS,
    Scenario { name: "epochs, long", first: &[1, 0], waiting: 2, ..EPOCHS },
    DISK,
    Scenario { name: "disk, long", faults: 2, kinds: &[Fault::Crash, Fault::Cut, Fault::Resync], ..DISK },
    Scenario { name: "all, long", faults: 2, kinds: EVERYTHING, ..ALL },
    VIEW_BOOT,
    LEASES,
    Scenario { name: "replica, long", faults: 2, first: &[1, 0], ..REPLICA },
    Scenario { name: "replica, fills by steps", stepped: &[0], waiting: 1, ..REPLICA },
];
