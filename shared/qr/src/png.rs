//! PNG: 1-bit greyscale, written here from the rectangles.
//!
//! Only one row of each module is drawn; its repetitions are back references of one row's length
//! in the compressed stream (what the `Up` filter would give, in fewer bytes).

use super::{
    QrError,
    deflate::Zlib,
    layout::{Layout, MAX_PNG_SIDE, Rect, Scale},
};

/// The whole file.
pub(super) fn draw(layout: &Layout, rects: &[Rect]) -> Result<Vec<u8>, QrError> {
    let (width, height) = (layout.width, layout.height);
    if width.max(height) > MAX_PNG_SIDE {
        return Err(QrError::CanvasTooLarge { width, height });
    }
    let mut header = [0; 13];
    header[..4].copy_from_slice(&width.to_be_bytes());
    header[4..8].copy_from_slice(&height.to_be_bytes());
    // One bit, greyscale, deflate, the standard's filters, not interlaced.
    header[8] = 1;

    let mut png = Vec::with_capacity(2048);
    png.extend_from_slice(b"\x89PNG\r\n\x1a\n");
    chunk(&mut png, b"IHDR", &header);
    if let Scale::Millimetres { dpi: Some(dpi), .. } = layout.scale {
        // Pixels per metre, rounded: 300 dpi is 11,811.
        let density = ((u64::from(dpi) * 10_000 + 127) / 254) as u32;
        let mut physical = [0; 9];
        physical[..4].copy_from_slice(&density.to_be_bytes());
        physical[4..8].copy_from_slice(&density.to_be_bytes());
        physical[8] = 1;
        chunk(&mut png, b"pHYs", &physical);
    }
    chunk(&mut png, b"IDAT", &pixels(layout, rects));
    chunk(&mut png, b"IEND", &[]);
    Ok(png)
}

/// The compressed rows, each with filter type 0 before it.
fn pixels(layout: &Layout, rects: &[Rect]) -> Vec<u8> {
    let length = 1 + layout.width.div_ceil(8) as usize;
    let mut zlib = Zlib::new(length);
    let mut blank = vec![0xff; length];
    blank[0] = 0;
    let mut row = blank.clone();
    let mut drawn = 0;
    // The rectangles come sorted by row, all of one row with one height.
    for band in rects.chunk_by(|a, b| a.y == b.y) {
        let Some(&Rect { y, height, .. }) = band.first() else { continue };
        zlib.rows(&blank, y - drawn);
        row.copy_from_slice(&blank);
        for rect in band {
            darken(&mut row[1..], rect.x, rect.width);
        }
        zlib.rows(&row, height);
        drawn = y + height;
    }
    zlib.rows(&blank, layout.height - drawn);
    zlib.finish()
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

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend_from_slice(&(data.len() as u32).to_be_bytes());
    let start = png.len();
    png.extend_from_slice(kind);
    png.extend_from_slice(data);
    let checksum = crc32fast::hash(&png[start..]);
    png.extend_from_slice(&checksum.to_be_bytes());
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
