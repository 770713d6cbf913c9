//! Joins the chunks of an order into its one file.

mod zip;

use std::{
    collections::HashSet,
    io::{Read, Write},
    ops::Range,
};

use serde_json::{Map, Value, json};

use self::zip::{Member, Zip};
use crate::{
    ChunkReceipt, MAX_CODES, PrintError, PrintFormat, PrintSpec,
    format::pdf::Document,
    index::{Entry, Index},
    names,
};

/// Name of the manifest in a ZIP.
pub const MANIFEST_NAME: &str = "manifest.csv";
/// Name of the receipt in a ZIP.
pub const RECEIPT_NAME: &str = "receipt.json";

/// What the receipt says beside the drawing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OrderFacts {
    /// The id of the order.
    pub order: String,
    /// Further members of the receipt, such as the edges that held the codes; a name that the receipt has of its own
    /// keeps the receipt's value.
    pub members: Map<String, Value>,
}

/// Joins chunks, in order, into the one file of an order.
///
/// Reads and writes in parts, and keeps at most some 100 bytes a code in memory. A part of an order that failed is not
/// continued: joining begins anew from the stored chunks, which takes seconds.
#[derive(Debug)]
pub struct Assembly<W: Write> {
    out: W,
    frame: Frame,
    next: u64,
    end: u64,
    /// Hashes of the names of files, without case.
    names: HashSet<u64>,
    totals: ChunkReceipt,
    receipt: Map<String, Value>,
}

#[derive(Debug)]
enum Frame {
    Zip(Zip),
    Pdf(Document),
    /// One after the other; bytes so far.
    Plain(u64),
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
    /// Begins the file of some codes: `0..total`, or for a reprint those of whole pages.
    ///
    /// # Errors
    /// `PrintError::Chunk` where the range is empty, begins within a sheet or ends behind `MAX_CODES`, `PrintError::Io`.
    pub fn new(
        spec: &PrintSpec,
        codes: Range<u64>,
        facts: &OrderFacts,
        mut out: W,
    ) -> Result<Self, PrintError> {
        if codes.is_empty() || codes.end > MAX_CODES || !spec.begins_page(codes.start) {
            return Err(PrintError::Chunk(format!("the codes {codes:?} are no whole pages")));
        }
        let frame = match spec.format() {
            PrintFormat::PdfPages | PrintFormat::PdfSheets => {
                let pages = spec.page_of(codes.end - 1) - spec.page_of(codes.start) + 1;
                Frame::Pdf(Document::begin(&mut out, pages)?)
            }
            PrintFormat::Zpl => Frame::Plain(0),
            PrintFormat::Png | PrintFormat::Svg | PrintFormat::Pdf | PrintFormat::Eps | PrintFormat::Tiff => {
                Frame::Zip(Zip::default())
            }
        };
        let mut receipt = facts.members.clone();
        receipt.insert("order".to_owned(), json!(facts.order));
        receipt.insert("spec".to_owned(), Value::Object(spec.to_json()));
        Ok(Self {
            out,
            frame,
            next: codes.start,
            end: codes.end,
            names: HashSet::new(),
            totals: ChunkReceipt::default(),
            receipt,
        })
    }

    /// Appends the next chunk.
    ///
    /// # Errors
    /// `PrintError::Chunk` where `index` is not that of the next chunk or not of this format,
    /// `PrintError::DuplicateName`, `PrintError::Io`, also where `body` is shorter than its index says. The file is lost
    /// then.
    pub fn add(&mut self, mut body: impl Read, index: &[u8]) -> Result<(), PrintError> {
        let index = Index::from_bytes(index)?;
        if index.first != self.next || index.receipt.codes > self.end - self.next {
            let (first, count) = (index.first, index.receipt.codes);
            return Err(PrintError::Chunk(format!(
                "{count} codes from {first} on came, {} is the next",
                self.next
            )));
        }
        if index.entries.len() as u64 != index.receipt.pages {
            return Err(PrintError::Chunk("an index has not one entry for each page".to_owned()));
        }
        for entry in &index.entries {
            self.entry(entry, &mut body)?;
        }
        if body.read(&mut [0])? > 0 {
            return Err(PrintError::Chunk("a body is longer than its index says".to_owned()));
        }
        self.next += index.receipt.codes;
        self.totals.add(&index.receipt);
        Ok(())
    }

    /// Writes what comes last. `manifest` is the whole manifest with its header: a ZIP has it as `manifest.csv`, with
    /// the receipt as `receipt.json`; it is not read for other formats.
    ///
    /// # Errors
    /// `PrintError::Chunk` where codes are missing, `PrintError::Io`.
    pub fn finish(mut self, manifest: impl Read) -> Result<Finished, PrintError> {
        if self.next != self.end {
            return Err(PrintError::Chunk(format!(
                "the codes from {} to {} are missing",
                self.next, self.end
            )));
        }
        let receipt = receipt(std::mem::take(&mut self.receipt), &self.totals);
        let bytes = match self.frame {
            Frame::Zip(mut zip) => {
                zip.pack(&mut self.out, MANIFEST_NAME, manifest)?;
                zip.pack(&mut self.out, RECEIPT_NAME, receipt.as_bytes())?;
                zip.finish(&mut self.out)?
            }
            Frame::Pdf(document) => document.finish(&mut self.out)?,
            Frame::Plain(bytes) => bytes,
        };
        self.out.flush()?;
        Ok(Finished { bytes, receipt, totals: self.totals })
    }

    fn entry(&mut self, entry: &Entry, body: &mut impl Read) -> Result<(), PrintError> {
        match (&mut self.frame, entry) {
            (Frame::Zip(zip), Entry::File { name, deflated, crc, length, size }) => {
                if !self.names.insert(names::hash(name)) {
                    return Err(PrintError::DuplicateName { name: name.clone() });
                }
                let (deflated, crc, length, size) = (*deflated, *crc, *length, *size);
                zip.add(&mut self.out, Member { name, deflated, crc, length, size }, body)?;
            }
            (Frame::Pdf(document), Entry::Page { length, width, height }) => {
                document.page(&mut self.out, *width, *height)?;
                document.content(&mut self.out, *length, "/Filter/FlateDecode", body)?;
            }
            (Frame::Plain(bytes), Entry::Label { length }) => {
                let copied = std::io::copy(&mut Read::take(body, *length), &mut self.out)?;
                *bytes += copied;
                if copied != *length {
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                }
            }
            (Frame::Zip(_) | Frame::Pdf(_) | Frame::Plain(_), _) => {
                return Err(PrintError::Chunk("a chunk is of another format than its order".to_owned()));
            }
        }
        Ok(())
    }
}

/// The text of a receipt.
fn receipt(mut members: Map<String, Value>, totals: &ChunkReceipt) -> String {
    let own = [
        ("codes", json!(totals.codes)),
        ("decoded", json!(totals.decoded)),
        ("sampled", json!(totals.sampled)),
        ("decoder", json!("rqrr")),
        ("pages", json!(totals.pages)),
        ("smallestModuleMm", json!(totals.smallest_module_mm())),
        ("largestModuleMm", json!(totals.largest_module_mm())),
        ("lowestVersion", json!(totals.lowest_version)),
        ("highestVersion", json!(totals.highest_version)),
    ];
    members.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
    format!("{:#}\n", Value::Object(members))
}

#[cfg(test)]
mod tests;
