//! What an order asks for, apart from its codes.

mod members;
mod naming;
mod parse;
mod sheet;
mod sizes;

use std::ops::Range;

use qr::Ecl;
use serde_json::{Map, Value, json};

pub(crate) use self::sheet::Sheet;
use self::{members::millimetres, naming::Naming};

/// What comes out of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrintFormat {
    /// A ZIP with a 1-bit PNG for each code.
    Png,
    /// A ZIP with an SVG for each code.
    Svg,
    /// A ZIP with a PDF of one page for each code.
    Pdf,
    /// A ZIP with an EPS for each code.
    Eps,
    /// A ZIP with a 1-bit TIFF for each code.
    Tiff,
    /// One PDF with a page for each code.
    PdfPages,
    /// One PDF of sheets with many labels.
    PdfSheets,
    /// One file for label printers that read ZPL, a label for each code.
    Zpl,
}

impl PrintFormat {
    /// Every format, in the order of the documentation.
    pub const ALL: [Self; 8] =
        [Self::Png, Self::Svg, Self::Pdf, Self::Eps, Self::Tiff, Self::PdfPages, Self::PdfSheets, Self::Zpl];

    /// The name in an order.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Eps => "eps",
            Self::Tiff => "tiff",
            Self::PdfPages => "pdf-pages",
            Self::PdfSheets => "pdf-sheets",
            Self::Zpl => "zpl",
        }
    }

    /// Whether each code is a file of its own, packed in a ZIP.
    pub const fn is_zip(self) -> bool {
        matches!(self, Self::Png | Self::Svg | Self::Pdf | Self::Eps | Self::Tiff)
    }

    /// Whether it is made of dots, so that it needs a density.
    pub(crate) const fn is_raster(self) -> bool {
        matches!(self, Self::Png | Self::Tiff | Self::Zpl)
    }

    /// The density of a raster when the order does not say: 300 as for images, 203 as of most label printers.
    const fn default_dpi(self) -> Option<u32> {
        match self {
            Self::Png | Self::Tiff => Some(qr::DEFAULT_PRINT_DPI),
            Self::Zpl => Some(203),
            Self::Svg | Self::Pdf | Self::Eps | Self::PdfPages | Self::PdfSheets => None,
        }
    }
}

/// What an order asks for, apart from its codes. Every value was made by parsing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintSpec {
    pub(crate) format: PrintFormat,
    pub(crate) code: CodeSpec,
    pub(crate) layout: Option<Sheet>,
    naming: Naming,
    pub(crate) hri: Hri,
    pub(crate) dpi: Option<u32>,
    pub(crate) allow_small: bool,
}

/// The symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeSpec {
    pub(crate) ecl: Ecl,
    /// At least this version.
    pub(crate) version: u8,
    pub(crate) size: CodeSize,
    /// White modules around it.
    pub(crate) quiet_zone: u32,
    /// Whether it says a GS1 Digital Link.
    pub(crate) is_digital_link: bool,
}

/// How large a symbol is, in nanometres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeSize {
    /// As large as the label allows.
    Fit,
    /// The width of a module.
    Module(u32),
    /// The edge with the quiet zone.
    Edge(u32),
}

/// The human-readable text below the symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hri {
    pub(crate) text: HriText,
    /// Height of a capital in nanometres.
    pub(crate) font: u32,
}

/// What the text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HriText {
    None,
    ShortId,
    Serial,
    /// `(01)` GTIN, `(21)` serial.
    Gs1,
}

impl HriText {
    const ALL: [(&'static str, Self); 4] =
        [("none", Self::None), ("shortId", Self::ShortId), ("serial", Self::Serial), ("gs1", Self::Gs1)];

    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ShortId => "shortId",
            Self::Serial => "serial",
            Self::Gs1 => "gs1",
        }
    }
}

impl PrintSpec {
    /// The members that `parse` knows, so that a caller can tell its own ones from them.
    pub const MEMBERS: [&'static str; 7] = ["format", "layout", "naming", "code", "hri", "dpi", "allowSmall"];

    /// Reads the members of an order; a later `parse` of `to_json` gives the same value.
    ///
    /// # Errors
    /// Every fault at once, each naming its member (`layout.rows`); unknown members are faults.
    pub fn parse(members: &Map<String, Value>) -> Result<Self, Vec<String>> {
        parse::parse(members)
    }

    /// Every member that has an effect, defaults filled in.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut code = Map::new();
        code.insert("ecl".to_owned(), json!(self.code.ecl.as_str()));
        code.insert("version".to_owned(), json!(self.code.version));
        code.insert("quietZone".to_owned(), json!(self.code.quiet_zone));
        if self.code.is_digital_link {
            code.insert("payload".to_owned(), json!("gs1dl"));
        }
        match self.code.size {
            CodeSize::Fit => None,
            CodeSize::Module(nm) => code.insert("moduleMm".to_owned(), millimetres(nm)),
            CodeSize::Edge(nm) => code.insert("sizeMm".to_owned(), millimetres(nm)),
        };
        let mut members = Map::new();
        members.insert("format".to_owned(), json!(self.format.as_str()));
        members.insert("code".to_owned(), Value::Object(code));
        if let Some(layout) = &self.layout {
            members.insert("layout".to_owned(), Value::Object(layout.to_json(self.format)));
        }
        if self.format.is_zip() {
            members.insert("naming".to_owned(), json!(self.naming.as_str()));
        }
        let hri = json!({"text": self.hri.text.as_str(), "fontMm": millimetres(self.hri.font)});
        members.insert("hri".to_owned(), hri);
        if let Some(dpi) = self.dpi {
            members.insert("dpi".to_owned(), json!(dpi));
        }
        members.insert("allowSmall".to_owned(), json!(self.allow_small));
        members
    }

    /// The format.
    pub fn format(&self) -> PrintFormat {
        self.format
    }

    /// Whether codes say the GS1 Digital Link of their item, and not its short URL.
    pub fn is_digital_link(&self) -> bool {
        self.code.is_digital_link
    }

    /// Whether every item needs a serial, as names or texts have it.
    pub fn needs_serial(&self) -> bool {
        matches!(self.hri.text, HriText::Serial | HriText::Gs1) || self.names_with(naming::Part::Serial)
    }

    /// Whether every item needs a GTIN, as names or texts have it.
    pub fn needs_gtin(&self) -> bool {
        self.hri.text == HriText::Gs1 || self.names_with(naming::Part::Gtin)
    }

    fn names_with(&self, part: naming::Part) -> bool {
        self.format.is_zip() && self.naming.has(part)
    }

    /// Name of the finished file: `codes.zip`, `codes.pdf` or `codes.zpl`.
    pub fn file_name(&self) -> &'static str {
        match self.format {
            PrintFormat::PdfPages | PrintFormat::PdfSheets => "codes.pdf",
            PrintFormat::Zpl => "codes.zpl",
            PrintFormat::Png | PrintFormat::Svg | PrintFormat::Pdf | PrintFormat::Eps | PrintFormat::Tiff => {
                "codes.zip"
            }
        }
    }

    /// Media type of the finished file.
    pub fn content_type(&self) -> &'static str {
        match self.format {
            PrintFormat::PdfPages | PrintFormat::PdfSheets => "application/pdf",
            PrintFormat::Zpl => "application/octet-stream",
            PrintFormat::Png | PrintFormat::Svg | PrintFormat::Pdf | PrintFormat::Eps | PrintFormat::Tiff => {
                "application/zip"
            }
        }
    }

    /// The name of a code's file in the ZIP. Safe on every file system.
    pub(crate) fn name_of(&self, index: u64, item: &crate::PrintItem) -> String {
        self.naming.name_of(index, item, self.format.as_str())
    }

    /// The chunks of an order of `total` codes: ranges of indexes from 0, whole sheets of about [`CHUNK_CODES`] codes.
    ///
    /// [`CHUNK_CODES`]: crate::CHUNK_CODES
    pub fn chunks(&self, total: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        self.chunks_of(total, crate::CHUNK_CODES)
    }

    /// The same with about `codes` codes a chunk, at least one sheet. The finished bytes do not depend on it.
    pub fn chunks_of(&self, total: u64, codes: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let (labels, skipped) = (self.labels(), self.skipped());
        let step = (codes.min(crate::MAX_CODES) / labels).max(1) * labels;
        let mut begin = 0_u64;
        std::iter::from_fn(move || {
            let end = (begin.saturating_add(skipped) / step * step).saturating_add(step - skipped);
            let range = begin..end.min(total);
            begin = end;
            (range.start < range.end).then_some(range)
        })
    }

    /// The page (sheet, label, file) that holds a code; both from 0.
    pub fn page_of(&self, index: u64) -> u64 {
        index.saturating_add(self.skipped()) / self.labels()
    }

    /// The codes of a page of an order of `total` codes; empty beyond the end. For reprints.
    pub fn codes_of_page(&self, page: u64, total: u64) -> Range<u64> {
        let first = page.saturating_mul(self.labels());
        let begin = first.saturating_sub(self.skipped()).min(total);
        let end = first.saturating_add(self.labels()).saturating_sub(self.skipped()).min(total);
        begin..end
    }

    /// Whether a code is the first one of its page.
    pub(crate) fn begins_page(&self, index: u64) -> bool {
        index == 0 || self.page_of(index) != self.page_of(index - 1)
    }

    /// Labels of a page.
    pub(crate) fn labels(&self) -> u64 {
        self.sheet().map_or(1, |sheet| u64::from(sheet.rows) * u64::from(sheet.columns))
    }

    /// Labels of the first sheet that are gone already.
    pub(crate) fn skipped(&self) -> u64 {
        self.sheet().map_or(0, |sheet| u64::from(sheet.start).saturating_sub(1))
    }

    fn sheet(&self) -> Option<&Sheet> {
        self.layout.as_ref().filter(|_| self.format == PrintFormat::PdfSheets)
    }
}

#[cfg(test)]
mod tests;
