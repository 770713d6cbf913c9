//! One chunk of an order: its codes drawn, and read back.

use crate::{ChunkReceipt, PrintError, PrintItem, PrintSpec};

/// The first line of a manifest; `Chunk::manifest` has the lines behind it.
pub const MANIFEST_HEADER: &str = "index,serial,shortId,url,gtin,file,page,row,column,version,moduleMm\r\n";

/// A drawn part of an order, to be stored until all are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The data of its files or pages, one after the other; about 1 to 20 kB a code.
    pub body: Vec<u8>,
    /// Where in `body` each is, with the receipt: opaque bytes for `Assembly::add`; about 40 a code.
    pub index: Vec<u8>,
    /// Lines of the manifest without the header, each ending with CR LF.
    pub manifest: String,
    /// What was drawn and read back.
    pub receipt: ChunkReceipt,
}

/// Draws the codes `first_index ..` of an order and reads each back from what was drawn.
///
/// `first_index` and the end must be those of a range of `PrintSpec::chunks` or `chunks_of`. Pure, and takes about a
/// second for 1,000 codes: call it on a blocking pool.
///
/// # Errors
/// The first code that cannot be drawn or read back; `PrintError::Chunk` where the range cuts a sheet.
pub fn render_chunk(spec: &PrintSpec, first_index: u64, items: &[PrintItem]) -> Result<Chunk, PrintError> {
    let _ = (spec, first_index, items);
    todo!()
}
