//! What an order asks for, apart from its codes.

use std::ops::Range;

use serde_json::{Map, Value};

/// What comes out of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintFormat {
    /// A ZIP with a PNG for each code.
    Png,
    /// A ZIP with an SVG for each code.
    Svg,
    /// A ZIP with a PDF for each code.
    Pdf,
    /// A ZIP with an EPS for each code.
    Eps,
    /// A ZIP with a 1-bit TIFF for each code.
    Tiff,
    /// One PDF with a page for each code.
    PdfPages,
    /// One PDF of sheets with many labels.
    PdfSheets,
    /// One file for label printers that read ZPL.
    Zpl,
}

/// What an order asks for, apart from its codes: a value of this type can be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintSpec {}

impl PrintSpec {
    /// Reads the members of an order; a later `parse` of `to_json` gives the same value.
    ///
    /// # Errors
    /// Every fault at once, each naming its member (`layout.rows`); unknown members are faults.
    pub fn parse(members: &Map<String, Value>) -> Result<Self, Vec<String>> {
        let _ = members;
        todo!()
    }

    /// The names that `parse` knows at the top level, so that a caller can tell its own members from these.
    pub const MEMBERS: [&'static str; 7] = ["format", "layout", "naming", "code", "hri", "dpi", "allowSmall"];

    /// Every member with its default filled in.
    pub fn to_json(&self) -> Map<String, Value> {
        todo!()
    }

    /// The format.
    pub fn format(&self) -> PrintFormat {
        todo!()
    }

    /// Whether every item needs a serial (naming or text has it).
    pub fn needs_serial(&self) -> bool {
        todo!()
    }

    /// Whether every item needs a GTIN.
    pub fn needs_gtin(&self) -> bool {
        todo!()
    }

    /// Name of the finished file: `codes.zip`, `codes.pdf` or `codes.zpl`.
    pub fn file_name(&self) -> &'static str {
        todo!()
    }

    /// Media type of the finished file.
    pub fn content_type(&self) -> &'static str {
        todo!()
    }

    /// The chunks of an order of `total` codes: ranges of indexes from 0, whole sheets of about `CHUNK_CODES` codes.
    pub fn chunks(&self, total: u64) -> impl Iterator<Item = Range<u64>> {
        self.chunks_of(total, crate::CHUNK_CODES)
    }

    /// The same with about `codes` codes a chunk (at least one sheet). The finished bytes do not depend on it.
    pub fn chunks_of(&self, total: u64, codes: u64) -> impl Iterator<Item = Range<u64>> {
        let _ = (total, codes);
        std::iter::empty()
    }

    /// The page (sheet, label) that holds a code; both from 0. Files of a ZIP count as pages.
    pub fn page_of(&self, index: u64) -> u64 {
        let _ = index;
        todo!()
    }

    /// The codes of a page of an order of `total` codes; empty beyond the end. For reprints.
    pub fn codes_of_page(&self, page: u64, total: u64) -> Range<u64> {
        let _ = (page, total);
        todo!()
    }
}
