//! Every link of the edge's domains in process, so that neither a known nor an unknown id needs the network.
//!
//! About 75 bytes a link with targets of 60 characters: ids are packed, texts that many links share stand once in
//! a dictionary, records stand in arenas with an index of four bytes a slot. The table is cut into shards behind
//! locks of their own: a change, a growth or a compaction holds up the readers of one shard in 8,192, for as long
//! as it takes to copy at most a few hundred kilobytes.

mod bytes;
mod file;
mod full;
mod ids;
mod names;
mod record;
mod shard;
mod table;

pub use self::{
    file::{Loaded, load, save},
    full::{Answer, Asked, Full},
    record::Lead,
};
pub use self::{
    full::{ReplicaState, ReplicaStatus},
    table::{Table, Unfit},
};
