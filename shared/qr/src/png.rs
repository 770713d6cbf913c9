//! PNG: 1-bit greyscale, drawn row by row from the rectangles, packed by `flate2` and framed by `png`; or 8-bit colours.

use std::io::{BufWriter, IntoInnerError, Write as _};

use flate2::{Compression, write::ZlibEncoder};
use png::{BitDepth, ColorType, Encoder, EncodingError, PixelDimensions, Unit, chunk};

use super::{
    QrError,
    layout::{Layout, MAX_PNG_SIDE, Rect, Scale},
    picture::Picture,
};

/// Level 9 is 5 % smaller at 300 pixels a side and takes six times as long; at 800 pixels, a third and twenty times.
const LEVEL: u32 = 6;

/// Rows are handed to the compressor in parts of so many bytes: row by row it took five times as long.
const PART: usize = 64 << 10;

/// The whole file.
pub(super) fn draw(layout: &Layout, rects: &[Rect]) -> Result<Vec<u8>, QrError> {
    let (width, height) = (layout.width, layout.height);
    if width.max(height) > MAX_PNG_SIDE {
        return Err(QrError::CanvasTooLarge { width, height });
    }
    let mut file = Vec::with_capacity(2_048);
    // Sizes are in range and a vector takes every write, so nothing is left that could fail.
    match encode(layout, rects, &mut file) {
        Ok(()) => Ok(file),
        Err(_) => Err(QrError::CanvasTooLarge { width, height }),
    }
}

/// The whole file of a picture in colours.
pub(super) fn draw_colored(picture: &Picture) -> Result<Vec<u8>, QrError> {
    let (width, height) = (picture.width as u32, picture.height as u32);
    let mut file = Vec::with_capacity(8 << 10);
    // As above, nothing is left that could fail.
    match encode_colored(picture, (width, height), &mut file) {
        Ok(()) => Ok(file),
        Err(_) => Err(QrError::CanvasTooLarge { width, height }),
    }
}

fn encode_colored(
    picture: &Picture,
    (width, height): (u32, u32),
    file: &mut Vec<u8>,
) -> Result<(), EncodingError> {
    let mut encoder = Encoder::new(file, width, height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    let packed = ZlibEncoder::new(Vec::with_capacity(8 << 10), Compression::new(LEVEL));
    let mut packed = BufWriter::with_capacity(PART, packed);
    for row in picture.pixels.chunks_exact(picture.width) {
        packed.write_all(&[0])?;
        packed.write_all(row.as_flattened())?;
    }
    let packed = packed.into_inner().map_err(IntoInnerError::into_error)?.finish()?;
    writer.write_chunk(chunk::IDAT, &packed)?;
    writer.finish()
}

fn encode(layout: &Layout, rects: &[Rect], file: &mut Vec<u8>) -> Result<(), EncodingError> {
    let mut encoder = Encoder::new(file, layout.width, layout.height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    if let Scale::Millimetres { dpi: Some(dpi), .. } = layout.scale {
        // Pixels per metre, rounded: 300 dpi is 11,811.
        let density = ((u64::from(dpi) * 10_000 + 127) / 254) as u32;
        encoder.set_pixel_dims(Some(PixelDimensions { xppu: density, yppu: density, unit: Unit::Meter }));
    }
    let mut writer = encoder.write_header()?;
    writer.write_chunk(chunk::IDAT, &pixels(layout, rects)?)?;
    writer.finish()
}

/// The compressed rows, each with filter type 0 before it: rows repeat, which the compressor finds without a filter.
fn pixels(layout: &Layout, rects: &[Rect]) -> std::io::Result<Vec<u8>> {
    let packed = ZlibEncoder::new(Vec::with_capacity(2_048), Compression::new(LEVEL));
    let mut packed = BufWriter::with_capacity(PART, packed);
    let mut put = |row: &[u8], times: u32| (0..times).try_for_each(|_| packed.write_all(row));
    let mut blank = vec![0xff; 1 + layout.width.div_ceil(8) as usize];
    blank[0] = 0;
    let mut row = blank.clone();
    let mut drawn = 0;
    // The rectangles come sorted by row, all of one row with one height.
    for band in rects.chunk_by(|a, b| a.y == b.y) {
        let Some(&Rect { y, height, .. }) = band.first() else { continue };
        put(&blank, y - drawn)?;
        row.copy_from_slice(&blank);
        for rect in band {
            darken(&mut row[1..], rect.x, rect.width);
        }
        put(&row, height)?;
        drawn = y + height;
    }
    put(&blank, layout.height - drawn)?;
    packed.into_inner().map_err(IntoInnerError::into_error)?.finish()
}

/// Clears the bits `x .. x + width` of a row, the highest bit of a byte being the leftmost.
fn darken(row: &mut [u8], x: u32, width: u32) {
    let end = x + width;
    let (first, last) = ((x / 8) as usize, ((end - 1) / 8) as usize);
    let head = 0xff_u8 >> (x % 8);
    let tail = 0xff_u8 << (7 - (end - 1) % 8);
    if first == last {
        row[first] &= !(head & tail);
    } else {
        row[first] &= !head;
        row[first + 1..last].fill(0);
        row[last] &= !tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn darken_touches_exactly_its_bits() {
        for x in 0..24 {
            for width in 1..=24 - x {
                let mut row = [0xff; 3];
                darken(&mut row, x, width);
                let bits = u32::from_be_bytes([0, row[0], row[1], row[2]]);
                let expected = (0..24).filter(|at| !(x..x + width).contains(at));
                assert_eq!(bits, expected.map(|at| 1 << (23 - at)).sum::<u32>(), "{x} {width}");
            }
        }
    }
}
