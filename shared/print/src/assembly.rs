//! Joins the chunks of an order into its one file.

use std::{
    io::{Read, Write},
    ops::Range,
};

use serde_json::{Map, Value};

use crate::{ChunkReceipt, PrintError, PrintSpec};

/// What the receipt says beside the drawing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OrderFacts {
    /// The id of the order.
    pub order: String,
    /// Further members of the receipt, such as the edges that held the codes. A name that the receipt has of its own
    /// is left out.
    pub members: Map<String, Value>,
}

/// Joins chunks, in order, into the one file of an order. Keeps about 60 bytes a code in memory.
#[derive(Debug)]
pub struct Assembly<W: Write> {
    out: W,
}

/// A joined file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Bytes that were written.
    pub bytes: u64,
    /// The receipt as JSON text, the same as in a ZIP.
    pub receipt: String,
    /// The sum of the chunks' receipts.
    pub totals: ChunkReceipt,
}

impl<W: Write> Assembly<W> {
    /// Begins the file of the codes `codes`: `0..total`, or for a reprint those of some whole pages.
    ///
    /// # Errors
    /// `PrintError::Io` of `out`; `PrintError::Chunk` where the range is empty, cuts a sheet or exceeds `MAX_CODES`.
    pub fn new(spec: &PrintSpec, codes: Range<u64>, facts: &OrderFacts, out: W) -> Result<Self, PrintError> {
        let _ = (spec, codes, facts);
        let _ = &out;
        todo!()
    }

    /// Appends the next chunk.
    ///
    /// # Errors
    /// `PrintError::Chunk` where `body` and `index` do not belong together or are not the next ones,
    /// `PrintError::DuplicateName`, `PrintError::Io`.
    pub fn add(&mut self, body: impl Read, index: &[u8]) -> Result<(), PrintError> {
        let _ = (body, index);
        todo!()
    }

    /// Writes what comes last. `manifest` is the whole manifest with its header: it goes into a ZIP as `manifest.csv`,
    /// with the receipt as `receipt.json`; the other formats do not read it.
    ///
    /// # Errors
    /// `PrintError::Chunk` where codes are missing, `PrintError::Io`.
    pub fn finish(self, manifest: impl Read) -> Result<Finished, PrintError> {
        let _ = manifest;
        let _ = self.out;
        todo!()
    }
}
