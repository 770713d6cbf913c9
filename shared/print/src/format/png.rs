//! PNG: 1-bit greyscale with its density.

use std::io::{Cursor, Write as _};

use flate2::{Compression, write::ZlibEncoder};
use png::{BitDepth, ColorType, Decoder, Encoder, EncodingError, PixelDimensions, Unit, chunk};

use crate::bitmap::Bitmap;

/// The level of `flate2`: higher ones take several times as long for a few per cent.
const LEVEL: u32 = 6;

/// The whole file.
pub(crate) fn draw(bitmap: &Bitmap, dpi: u32) -> Result<Vec<u8>, EncodingError> {
    let mut file = Vec::with_capacity(2_048);
    let side = |dots: usize| u32::try_from(dots).unwrap_or(u32::MAX);
    let mut encoder = Encoder::new(&mut file, side(bitmap.width()), side(bitmap.height()));
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    // Dots a metre, rounded: 300 dpi is 11,811.
    let density = ((u64::from(dpi) * 10_000 + 127) / 254) as u32;
    encoder.set_pixel_dims(Some(PixelDimensions { xppu: density, yppu: density, unit: Unit::Meter }));
    let mut writer = encoder.write_header()?;
    writer.write_chunk(chunk::IDAT, &pack(bitmap)?)?;
    writer.finish()?;
    Ok(file)
}

/// The rows, each with the filter type 0 before it; light is 1 here.
fn pack(bitmap: &Bitmap) -> std::io::Result<Vec<u8>> {
    let mut rows = Vec::with_capacity(bitmap.bytes().len() + bitmap.height());
    for row in bitmap.rows() {
        rows.push(0);
        rows.extend(row.iter().map(|byte| !byte));
    }
    let mut packed = ZlibEncoder::new(Vec::with_capacity(2_048), Compression::new(LEVEL));
    packed.write_all(&rows)?;
    packed.finish()
}

/// The dots of a file of `draw`.
pub(crate) fn read(file: &[u8]) -> Option<Bitmap> {
    let mut reader = Decoder::new(Cursor::new(file)).read_info().ok()?;
    let mut bytes = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut bytes).ok()?;
    if (frame.color_type, frame.bit_depth) != (ColorType::Grayscale, BitDepth::One) {
        return None;
    }
    let light = bytes.into_iter().map(|byte| !byte).collect();
    Bitmap::from_bytes(frame.width as usize, frame.height as usize, light)
}
