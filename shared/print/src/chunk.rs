//! One chunk of an order: its codes drawn, and read back.

use std::{
    io::{self, Read as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use flate2::{
    Compression,
    read::ZlibDecoder,
    write::{DeflateEncoder, ZlibEncoder},
};

use crate::{
    ChunkReceipt, PrintError, PrintFormat, PrintItem, PrintSpec, draw,
    format::pdf,
    index::{Entry, Index},
    manifest::{Manifest, Position},
    marks,
    place::{Placed, place},
    spec::Sheet,
    verify::{self, Expected, Found},
};

/// The level of `flate2` for text and pages.
const LEVEL: u32 = 6;

/// A drawn part of an order, to be stored until all are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The data of its files or pages, one after the other: about a half to 20 kB a code.
    pub body: Vec<u8>,
    /// Where in `body` each is, with the receipt: for [`Assembly::add`](crate::Assembly::add). About 100 bytes a code.
    pub index: Vec<u8>,
    /// Lines of the manifest without [`MANIFEST_HEADER`](crate::MANIFEST_HEADER), each ending with CR LF.
    pub manifest: String,
    /// What was drawn and read back.
    pub receipt: ChunkReceipt,
}

/// Draws the codes from `first_index` (from 0) on, and reads each back from what was drawn.
///
/// The codes must be those of a range of `PrintSpec::chunks` or `chunks_of`; all sheets but the last of an order are
/// full. Takes a good part of a second for 1,000 codes: call it on a blocking pool.
///
/// # Errors
/// The first code that cannot be drawn or read back; `PrintError::Chunk` where `first_index` is not the first code of
/// a sheet, or no code is given.
pub fn render_chunk(spec: &PrintSpec, first_index: u64, items: &[PrintItem]) -> Result<Chunk, PrintError> {
    render_chunk_until(spec, first_index, items, &AtomicBool::new(false))
}

/// The same, given up at the next code once `stop` is set.
///
/// # Errors
/// Those of `render_chunk`; `PrintError::Stopped` when it was given up.
pub fn render_chunk_until(
    spec: &PrintSpec,
    first_index: u64,
    items: &[PrintItem],
    stop: &AtomicBool,
) -> Result<Chunk, PrintError> {
    let last = first_index.saturating_add(items.len() as u64);
    if items.is_empty() || last > crate::MAX_CODES || !spec.begins_page(first_index) {
        return Err(PrintError::Chunk(format!("the codes {first_index} to {last} are no whole pages")));
    }
    let mut builder = Builder {
        spec,
        stop,
        body: Vec::new(),
        entries: Vec::new(),
        manifest: Manifest::new(),
        receipt: ChunkReceipt::default(),
    };
    match (spec.format(), &spec.layout) {
        (PrintFormat::PdfSheets, Some(sheet)) => builder.sheets(sheet, first_index, items)?,
        _ => {
            for (index, item) in (first_index..).zip(items) {
                builder.single(index, item)?;
            }
        }
    }
    let Builder { body, entries, manifest, receipt, .. } = builder;
    let index = Index::new(first_index, receipt, entries).to_bytes()?;
    Ok(Chunk { body, index, manifest: manifest.finish(), receipt })
}

/// Whether a code can be drawn as asked; nothing is drawn. So an order is refused before its codes are made.
///
/// # Errors
/// `PrintError::Symbol` or `PrintError::Code`, as of the first code of an order.
pub fn check_item(spec: &PrintSpec, item: &PrintItem) -> Result<(), PrintError> {
    place(spec, 0, item).map(|_| ())
}

struct Builder<'a> {
    spec: &'a PrintSpec,
    stop: &'a AtomicBool,
    body: Vec<u8>,
    entries: Vec<Entry>,
    manifest: Manifest,
    receipt: ChunkReceipt,
}

impl Builder<'_> {
    /// Between two codes: one takes milliseconds, a large picture a part of a second.
    fn go_on(&self) -> Result<(), PrintError> {
        if self.stop.load(Ordering::Relaxed) { Err(PrintError::Stopped) } else { Ok(()) }
    }

    /// Draws a code that is a file, a page or a label of its own.
    fn single(&mut self, index: u64, item: &PrintItem) -> Result<(), PrintError> {
        self.go_on()?;
        let (spec, format) = (self.spec, self.spec.format());
        let placed = place(spec, index, item)?;
        let mut bytes = draw::draw(spec, &placed)?;
        let file = match format {
            PrintFormat::PdfPages | PrintFormat::PdfSheets => {
                bytes = self.page(placed.width, placed.height, &bytes)?;
                spec.file_name().to_owned()
            }
            PrintFormat::Zpl => {
                self.entries.push(Entry::Label { length: bytes.len() as u64 });
                self.body.extend(&bytes);
                spec.file_name().to_owned()
            }
            // It is packed already.
            PrintFormat::Png => self.store(spec.name_of(index, item), &bytes)?,
            PrintFormat::Svg | PrintFormat::Pdf | PrintFormat::Eps | PrintFormat::Tiff => {
                self.pack(spec.name_of(index, item), &bytes)?
            }
        };
        self.receipt.pages += 1;
        let found =
            draw::read(format, &bytes, &Expected { payload: &item.url, ecl: spec.code.ecl, placed: &placed });
        // Each file of a ZIP has one page.
        let page = if format.is_zip() { 1 } else { spec.page_of(index) + 1 };
        self.drawn(index, item, &placed, found, &Position { file, page, label: None })
    }

    /// Draws sheets of labels.
    fn sheets(&mut self, sheet: &Sheet, first: u64, mut items: &[PrintItem]) -> Result<(), PrintError> {
        let labels = self.spec.labels();
        let mut index = first;
        while !items.is_empty() {
            let begin = (index + self.spec.skipped()) % labels;
            let (these, rest) = items.split_at(items.len().min((labels - begin) as usize));
            self.sheet(sheet, index, begin, these)?;
            index += these.len() as u64;
            items = rest;
        }
        Ok(())
    }

    /// Draws a sheet whose labels before `begin` are gone.
    fn sheet(
        &mut self,
        sheet: &Sheet,
        first: u64,
        begin: u64,
        items: &[PrintItem],
    ) -> Result<(), PrintError> {
        let columns = u64::from(sheet.columns);
        let mut groups = if sheet.cut_marks { marks::groups(sheet) } else { Vec::new() };
        let mut labels = Vec::with_capacity(items.len());
        for (nth, item) in (0_u64..).zip(items) {
            self.go_on()?;
            let placed = place(self.spec, first + nth, item)?;
            let (row, column) = ((begin + nth) / columns, (begin + nth) % columns);
            let (row, column) = (row as u32, column as u32);
            let corner = sheet.corner(row, column);
            groups.extend(placed.groups(corner));
            labels.push((placed, corner, (row + 1, column + 1)));
        }
        let (width, height) = (u64::from(sheet.width), u64::from(sheet.height));
        let content = self.page(width, height, &pdf::content(height, &groups))?;
        let read = pdf::read(&content, height).unwrap_or_default();
        self.receipt.pages += 1;
        let page = self.spec.page_of(first) + 1;
        for ((nth, item), (placed, corner, label)) in (0_u64..).zip(items).zip(labels) {
            let expected = Expected { payload: &item.url, ecl: self.spec.code.ecl, placed: &placed };
            let found = verify::vector(&read, corner, &expected);
            let position = Position { file: self.spec.file_name().to_owned(), page, label: Some(label) };
            self.drawn(first + nth, item, &placed, found, &position)?;
        }
        Ok(())
    }

    /// Adds a page; gives its content, unpacked again from what was added.
    fn page(&mut self, width: u64, height: u64, content: &[u8]) -> Result<Vec<u8>, PrintError> {
        let begin = self.body.len();
        let mut packed = ZlibEncoder::new(&mut self.body, Compression::new(LEVEL));
        packed.write_all(content)?;
        packed.finish()?;
        let packed = self.body.get(begin..).unwrap_or_default();
        self.entries.push(Entry::Page { length: packed.len() as u64, width, height });
        let mut content = Vec::new();
        ZlibDecoder::new(packed).read_to_end(&mut content)?;
        Ok(content)
    }

    /// Adds a file of a ZIP as it is.
    fn store(&mut self, name: String, bytes: &[u8]) -> Result<String, PrintError> {
        self.body.extend(bytes);
        self.file(name, bytes, bytes.len(), false)
    }

    /// Adds a file of a ZIP, packed by deflate.
    fn pack(&mut self, name: String, bytes: &[u8]) -> Result<String, PrintError> {
        let begin = self.body.len();
        let mut packed = DeflateEncoder::new(&mut self.body, Compression::new(LEVEL));
        packed.write_all(bytes)?;
        packed.finish()?;
        self.file(name, bytes, self.body.len() - begin, true)
    }

    fn file(
        &mut self,
        name: String,
        bytes: &[u8],
        length: usize,
        deflated: bool,
    ) -> Result<String, PrintError> {
        let size = |bytes: usize| {
            u32::try_from(bytes)
                .map_err(|_| PrintError::Chunk(format!("the file {name} has more than 4 GiB")))
        };
        let (length, size) = (size(length)?, size(bytes.len())?);
        let crc = crc32fast::hash(bytes);
        self.entries.push(Entry::File { name: name.clone(), deflated, crc, length, size });
        Ok(name)
    }

    /// Counts a code, if it was read back.
    fn drawn(
        &mut self,
        index: u64,
        item: &PrintItem,
        placed: &Placed,
        found: Option<Found>,
        position: &Position,
    ) -> Result<(), PrintError> {
        let Some(found) = found else {
            return Err(PrintError::NotDecoded { index, short_id: item.short_id.clone() });
        };
        let (version, module_nm) = (placed.symbol.version(), placed.module_nm);
        self.receipt.add(&ChunkReceipt {
            codes: 1,
            decoded: 1,
            sampled: u64::from(found == Found::Sampled),
            pages: 0,
            smallest_module_nm: module_nm,
            largest_module_nm: module_nm,
            lowest_version: version,
            highest_version: version,
        });
        self.manifest.add(index, item, position, version, module_nm).map_err(io::Error::other)?;
        Ok(())
    }
}

/// How far `bench_codes` goes.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchStep {
    /// Symbols, and their places.
    Encode,
    /// Files, labels or pages too, not packed.
    Draw,
    /// And reads them back.
    Read,
}

/// A part of the work of `render_chunk`, for the benchmark: gives the bytes that were drawn.
#[doc(hidden)]
pub fn bench_codes(spec: &PrintSpec, items: &[PrintItem], step: BenchStep) -> Result<usize, PrintError> {
    let mut length = 0;
    for (index, item) in (0..).zip(items) {
        let placed = place(spec, index, item)?;
        if step == BenchStep::Encode {
            length += placed.symbol.modules() as usize;
            continue;
        }
        let bytes = draw::draw(spec, &placed)?;
        length += bytes.len();
        let expected = Expected { payload: &item.url, ecl: spec.code.ecl, placed: &placed };
        if step == BenchStep::Read && draw::read(spec.format(), &bytes, &expected).is_none() {
            return Err(PrintError::NotDecoded { index, short_id: item.short_id.clone() });
        }
    }
    Ok(length)
}
