//! A code as a file, a label or a page of its own: the bytes, and what is read from them.

use std::io;

use crate::{
    PrintFormat, PrintSpec,
    bitmap::Bitmap,
    format::{eps, pdf, png, svg, tiff, zpl},
    place::Placed,
    verify::{self, Expected, Found},
};

/// The bytes of a file or a label, or the content of a page, not packed.
pub(crate) fn draw(spec: &PrintSpec, placed: &Placed) -> io::Result<Vec<u8>> {
    let (width, height) = (placed.width, placed.height);
    let groups = placed.groups((0, 0));
    let bitmap = || Bitmap::draw(width, height, &groups);
    let dpi = spec.dpi.unwrap_or(qr::DEFAULT_PRINT_DPI);
    Ok(match spec.format {
        PrintFormat::Png => png::draw(&bitmap(), dpi).map_err(io::Error::other)?,
        PrintFormat::Tiff => tiff::draw(&bitmap(), dpi),
        PrintFormat::Zpl => zpl::draw(&bitmap()),
        PrintFormat::Svg => svg::draw(width, height, &groups),
        PrintFormat::Eps => eps::draw(width, height, &groups),
        PrintFormat::Pdf => pdf::single(width, height, &pdf::content(height, &groups))?,
        PrintFormat::PdfPages | PrintFormat::PdfSheets => pdf::content(height, &groups),
    })
}

/// Reads the code from bytes of `draw`; `None` where it is not what is expected.
pub(crate) fn read(format: PrintFormat, bytes: &[u8], expected: &Expected<'_>) -> Option<Found> {
    let height = expected.placed.height;
    let rects = match format {
        PrintFormat::Png => return verify::raster(&png::read(bytes)?, expected),
        PrintFormat::Tiff => return verify::raster(&tiff::read(bytes)?, expected),
        PrintFormat::Zpl => return verify::raster(&zpl::read(bytes)?, expected),
        PrintFormat::Svg => svg::read(bytes)?,
        PrintFormat::Eps => eps::read(bytes, height)?,
        PrintFormat::Pdf => pdf::read(pdf::single_content(bytes)?, height)?,
        PrintFormat::PdfPages | PrintFormat::PdfSheets => pdf::read(bytes, height)?,
    };
    verify::vector(&rects, (0, 0), expected)
}
