//! The steps that the model takes, and its faults.

use super::super::edge::EventStep;

/// A fault; each costs one of a scenario's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The stream breaks.
    Cut,
    /// Something was lost, doubled or reordered: the edge asks for a new welcome on the same stream.
    Resync,
    /// `FLUSHALL`, or a restart without persistence.
    Flush(u8),
    /// A copy of a shard is taken; a failover to it may follow.
    Copy(u8),
    /// Another publisher takes the lease while the first one does not know.
    Depose,
    /// The database is restored to some revisions ago; both lead to another epoch.
    Restore(u8),
    /// The edge dies and starts again.
    Crash,
    /// The stream swallows what comes until the next welcome, and goes on with heartbeats.
    Lose,
}

/// One step of anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Control commits a change.
    Write { key: u8, put: bool },
    /// A publisher runs its next script on a shard.
    Publish { publisher: u8, shard: u8 },
    /// A shard fails over to its copy.
    Failover,
    /// The edge dials; what control reads for the welcome is of now.
    Dial,
    /// The welcome arrives.
    Welcome { snapshot: bool },
    /// The stream brings the next event, and it is applied at once.
    Apply,
    /// The stream brings the next event, and it is applied by steps.
    Event(EventStep),
    /// The stream brings an event that does not fit.
    Stray { rev: u8 },
    /// A client asks; on a miss it joins the fill, or starts one.
    Ask { key: u8 },
    /// A client that missed before the entry came starts another fill.
    Miss { key: u8 },
    /// A fill reads Redis.
    Read { key: u8 },
    /// A fill asks control, because Redis was rejected.
    Lookup { key: u8 },
    /// A fill offers to the cache what it has.
    Offer { key: u8 },
    /// A rejected view is lifted by the tail.
    Lift { key: u8 },
    /// A fill tells those who wait.
    Land { key: u8 },
    /// A fill gives up: 503.
    GiveUp { key: u8 },
    /// A client asks and is answered with nothing in between.
    Fill { key: u8 },
    /// Memory pressure.
    Evict { key: u8 },
    /// The disk snapshot begins: the first half is read.
    Save,
    /// The disk snapshot reads the second half, and counts from here.
    Saved,
    /// Control commits a change that no edge can use.
    Poison { key: u8 },
    /// An edge that holds nothing begins from what the view says of itself.
    BootFromView,
    /// An acknowledgement arrives.
    Ack,
    /// The lease of the edge runs out.
    Expire,
    /// `wait=edges` for the newest revision is answered.
    Wait,
    /// A heartbeat arrives.
    Beat,
    /// A record of the full replica, which was read before, is offered to the entries.
    Keep,
    /// Control reads the pages of the full replica.
    ReadPages,
    /// They come in.
    TakePages,
    /// A fault.
    Fault(Fault),
}
