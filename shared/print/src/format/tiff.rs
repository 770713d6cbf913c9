//! TIFF 6.0: one strip of 1-bit dots, packed by PackBits, with its density.

use crate::bitmap::Bitmap;

const WIDTH: u16 = 256;
const HEIGHT: u16 = 257;
const COMPRESSION: u16 = 259;
const STRIP_OFFSETS: u16 = 273;
const STRIP_BYTE_COUNTS: u16 = 279;
const PACK_BITS: u32 = 32_773;

/// Types of values: 16 bits, 32 bits, a fraction.
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;

/// Bytes of the header and of an entry of the directory.
const HEADER: usize = 8;
const ENTRY: usize = 12;

/// The whole file, the low byte first.
pub(crate) fn draw(bitmap: &Bitmap, dpi: u32) -> Vec<u8> {
    let mut strip = Vec::new();
    for row in bitmap.rows() {
        pack(row, &mut strip);
    }
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let [width, height, length] = [bitmap.width(), bitmap.height(), strip.len()].map(number);
    const ENTRIES: usize = 13;
    let fractions = number(HEADER + 2 + ENTRIES * ENTRY + 4);
    let entries: [(u16, u16, u32); ENTRIES] = [
        (WIDTH, LONG, width),
        (HEIGHT, LONG, height),
        (258, SHORT, 1), // bits of a sample
        (COMPRESSION, SHORT, PACK_BITS),
        (262, SHORT, 0), // 0 is white
        (STRIP_OFFSETS, LONG, fractions + 16),
        (274, SHORT, 1),     // begins above at the left
        (277, SHORT, 1),     // samples of a dot
        (278, LONG, height), // rows of the strip
        (STRIP_BYTE_COUNTS, LONG, length),
        (282, RATIONAL, fractions),     // dots an inch across
        (283, RATIONAL, fractions + 8), // and down
        (296, SHORT, 2),                // the unit is an inch
    ];
    let mut file = Vec::with_capacity(200 + strip.len());
    file.extend(b"II*\0");
    file.extend(number(HEADER).to_le_bytes());
    file.extend((ENTRIES as u16).to_le_bytes());
    for (tag, kind, value) in entries {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(1_u32.to_le_bytes());
        // A short stands in the lower bytes, which come first.
        file.extend(value.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for _ in 0..2 {
        file.extend(dpi.to_le_bytes());
        file.extend(1_u32.to_le_bytes());
    }
    file.extend(strip);
    file
}

/// The dots of a file of `draw`.
pub(crate) fn read(file: &[u8]) -> Option<Bitmap> {
    let directory = file.get(HEADER + 2..)?;
    let find = |wanted: u16| {
        let entry =
            directory.chunks_exact(ENTRY).take(13).find(|entry| entry[..2] == wanted.to_le_bytes())?;
        entry[8..].try_into().ok().map(u32::from_le_bytes)
    };
    if !file.starts_with(b"II*\0\x08\0\0\0") || find(COMPRESSION)? != PACK_BITS {
        return None;
    }
    let (width, height) = (find(WIDTH)? as usize, find(HEIGHT)? as usize);
    let strip = file.get(find(STRIP_OFFSETS)? as usize..)?.get(..find(STRIP_BYTE_COUNTS)? as usize)?;
    Bitmap::from_bytes(width, height, unpack(strip)?)
}

/// Packs a row: a count before each part, of what is as it is, or of one byte that repeats.
fn pack(row: &[u8], packed: &mut Vec<u8>) {
    let mut rest = row;
    while let Some(&first) = rest.first() {
        let repeats = rest.iter().take(128).take_while(|&&byte| byte == first).count();
        if repeats > 1 {
            packed.extend([(257 - repeats) as u8, first]);
            rest = &rest[repeats..];
            continue;
        }
        // Up to where three of one kind begin.
        let plain =
            rest.windows(3).take(128).position(|window| window[0] == window[1] && window[1] == window[2]);
        let plain = plain.unwrap_or(rest.len()).clamp(1, 128);
        packed.push((plain - 1) as u8);
        packed.extend(&rest[..plain]);
        rest = &rest[plain..];
    }
}

fn unpack(mut packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some((&count, rest)) = packed.split_first() {
        match count {
            0..=127 => {
                let (plain, rest) = rest.split_at_checked(usize::from(count) + 1)?;
                bytes.extend(plain);
                packed = rest;
            }
            // Means nothing, by the definition of PackBits.
            128 => packed = rest,
            129..=255 => {
                let (&byte, rest) = rest.split_first()?;
                bytes.resize(bytes.len() + 257 - usize::from(count), byte);
                packed = rest;
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_row_is_read_as_it_was(
            row in prop::collection::vec(prop_oneof![3 => Just(0_u8), 1 => Just(0xff), 1 => any::<u8>()], 1..400),
        ) {
            let mut packed = Vec::new();
            pack(&row, &mut packed);
            prop_assert!(packed.len() <= row.len() + row.len().div_ceil(128));
            prop_assert_eq!(unpack(&packed), Some(row));
        }

        #[test]
        fn nothing_makes_the_reader_panic(file in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&file);
            let _ = unpack(&file);
        }
    }
}
