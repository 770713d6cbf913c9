//! The switches of the fill rule: as it holds, and its broken variants.

/// How a fill is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taking {
    /// The rule: floors, then revisions.
    Floors,
    /// Whatever was read is put.
    Plain,
    /// What is newer than the entry is put; there are no floors.
    Versions,
    /// As memcache: a miss takes a lease, an event ends it, a fill is put while its lease holds.
    Leases,
}

/// Every switch of the fill rule (`edge/README.md`), and of the publisher and the stream where they can break it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) taking: Taking,
    /// An event below the floor removes the older entry instead of being ignored.
    pub(super) low_events_remove: bool,
    /// A negative raises the floor as a value does.
    pub(super) negatives_raise: bool,
    /// A view without `meta` says nothing, instead of 404.
    pub(super) flushed_is_unknown: bool,
    /// A view that is being rebuilt says nothing.
    pub(super) complete_counts: bool,
    /// A snapshot makes negatives stale too.
    pub(super) snapshot_sweeps_all: bool,
    /// A newer view replaces an older entry instead of leaving it.
    pub(super) older_are_replaced: bool,
    /// A rejected view is not served, whether or not control answers.
    pub(super) only_verified: bool,
    /// A request that joins a fill refuses an answer from before itself.
    pub(super) joined_are_checked: bool,
    /// A run of events is applied iff `prev` is `applied`.
    pub(super) gaps_are_refused: bool,
    /// A stream that began in one epoch sends nothing of another.
    pub(super) stream_keeps_epoch: bool,
    /// Scripts of Redis refuse a lower term.
    pub(super) terms_fence: bool,
    /// Scripts of a rebuild check that Redis still has what they wrote before.
    pub(super) rebuild_counts: bool,
    /// Control's answer to a lookup has its epoch.
    pub(super) lookup_tells_epoch: bool,
    /// The disk snapshot takes `applied` before it reads entries.
    pub(super) disk_applied_first: bool,
    /// The disk snapshot leaves out what is stale.
    pub(super) disk_skips_stale: bool,
    /// After the first contact of a boot, what came from disk waits until the edge has caught up, and fills
    /// must be as new as the head of that contact.
    pub(super) contact_ends_disk: bool,
    /// A boot from the view counts everything before its watermark as stale.
    pub(super) view_boot_raises: bool,
    /// What cannot be read of a view says nothing, instead of 404.
    pub(super) garbled_is_unknown: bool,
    /// A change that is refused leaves what was held.
    pub(super) refused_keep: bool,
    /// An edge acknowledges what it has applied, not what it was sent.
    pub(super) acks_are_applied: bool,
    /// An edge whose lease has run out is named as unreachable, instead of as one that has it.
    pub(super) expired_are_unreachable: bool,
    /// An edge is live when it has what the heartbeat says, not whenever one comes.
    pub(super) beats_tell_head: bool,
    /// A record of the full replica is offered as of the revision that was applied when it was read.
    pub(super) offers_are_dated: bool,
    /// While a floor is above `applied`, the tail lifts what the table has.
    pub(super) table_waits: bool,
    /// Where a page skips what is changing, the table waits until that is applied.
    pub(super) pages_wait: bool,
    /// The table does not answer where a newer view was shown.
    pub(super) fills_hide_rows: bool,
}

impl Rule {
    /// The rule as edge and control have it.
    pub(super) const HELD: Self = Self {
        taking: Taking::Floors,
        low_events_remove: true,
        negatives_raise: true,
        flushed_is_unknown: true,
        complete_counts: true,
        snapshot_sweeps_all: true,
        older_are_replaced: true,
        only_verified: true,
        joined_are_checked: true,
        gaps_are_refused: true,
        stream_keeps_epoch: true,
        terms_fence: true,
        rebuild_counts: true,
        lookup_tells_epoch: true,
        disk_applied_first: true,
        disk_skips_stale: true,
        contact_ends_disk: true,
        view_boot_raises: true,
        garbled_is_unknown: true,
        refused_keep: true,
        acks_are_applied: true,
        expired_are_unreachable: true,
        beats_tell_head: true,
        offers_are_dated: true,
        table_waits: true,
        pages_wait: true,
        fills_hide_rows: true,
    };
}
