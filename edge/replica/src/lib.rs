//! A compact table of every link of the edge's domains, so that neither known nor unknown ids need the network.
//!
//! It takes about 75 bytes per link with targets of 60 characters: ids are packed, texts that many links share are
//! stored once in a dictionary, and records are in arenas with an index of four bytes per slot. The table is split into
//! 8,192 or more shards, each with its own lock. An insert, a growth or a compaction blocks the readers of one shard,
//! for as long as it takes to copy at most a few hundred kilobytes.
//!
//! Beside it, the tail: the keys that changed last, for edges that hold every link and for those that do not.

mod availability;
mod bytes;
mod file;
mod full;
mod ids;
mod names;
mod record;
mod shard;
mod table;
mod tail;

pub use self::{
    file::{Loaded, load, save},
    full::{Answer, Asked, Full},
    record::Lead,
};
pub use self::{
    full::{ReplicaState, ReplicaStatus},
    table::{Table, Unfit},
    tail::{Last, Resolved, Tail},
};
