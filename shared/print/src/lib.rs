#![doc = include_str!("../README.md")]

mod assembly;
mod bitmap;
mod chunk;
mod draw;
mod error;
mod format;
mod index;
mod manifest;
mod marks;
mod names;
mod place;
mod receipt;
mod spec;
mod text;
mod verify;

#[doc(hidden)]
pub use self::chunk::{BenchStep, bench_codes};
pub use self::{
    assembly::{Assembly, Finished, MANIFEST_NAME, OrderFacts, RECEIPT_NAME},
    chunk::{Chunk, check_item, render_chunk, render_chunk_until},
    error::PrintError,
    manifest::{MANIFEST_HEADER, manifest_fields},
    names::Names,
    receipt::ChunkReceipt,
    spec::{PrintFormat, PrintSpec},
};

/// Most codes of one order: the manifest of so many stays below the 4 GiB of a ZIP entry, and the index in memory below
/// 100 MB.
pub const MAX_CODES: u64 = 1_000_000;

/// Codes of a usual chunk: about a second of work.
pub const CHUNK_CODES: u64 = 1_000;

/// One code of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintItem {
    /// The serial of the item; needed where names or texts have it.
    pub serial: Option<String>,
    /// The short id, as in the URL.
    pub short_id: String,
    /// What the code says, drawn as it is given: upper-case it before where the domain ignores case.
    pub url: String,
    /// GTIN of 14 digits (shorter ones are filled with zeros); needed by `hri.text = gs1`.
    pub gtin: Option<String>,
}
