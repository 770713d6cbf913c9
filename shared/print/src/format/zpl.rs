//! ZPL: a label as a `^GFA` picture in the packed hexadecimal form.

use std::fmt::Write as _;

use crate::bitmap::Bitmap;

/// The commands of a label.
pub(crate) fn draw(bitmap: &Bitmap) -> Vec<u8> {
    let (width, height, stride) = (bitmap.width(), bitmap.height(), bitmap.stride());
    let total = stride * height;
    let mut label = String::with_capacity(1_000);
    // Writing to a String cannot fail.
    let _ = write!(label, "^XA\n^PW{width}\n^LL{height}\n^LH0,0\n^FO0,0^GFA,{total},{total},{stride},");
    let mut previous: Option<&[u8]> = None;
    for row in bitmap.rows() {
        match previous == Some(row) {
            true => label.push(':'),
            false => pack(row, &mut label),
        }
        previous = Some(row);
    }
    label.push_str("^FS\n^XZ\n");
    label.into_bytes()
}

/// Packs a row: a count before a digit that repeats; `,` fills the rest with zeros, `!` with ones.
fn pack(row: &[u8], label: &mut String) {
    let digits: Vec<u8> = row.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let mut rest = digits.as_slice();
    while let Some(&digit) = rest.first() {
        let repeats = rest.iter().take_while(|&&other| other == digit).count();
        if repeats == rest.len() && (digit == 0 || digit == 15) {
            label.push(if digit == 0 { ',' } else { '!' });
            return;
        }
        count(repeats, label);
        label.push(char::from_digit(digit.into(), 16).unwrap_or('0').to_ascii_uppercase());
        rest = &rest[repeats..];
    }
}

/// `g` to `z` count 20 to 400 by twenties, `G` to `Y` 1 to 19; they add up. One needs no count.
fn count(mut repeats: usize, label: &mut String) {
    while repeats >= 20 {
        let twenties = (repeats / 20).min(20);
        label.push(char::from(b'f' + twenties as u8));
        repeats -= twenties * 20;
        if repeats == 0 {
            return;
        }
    }
    if repeats > 1 || label.ends_with(|last: char| last.is_ascii_lowercase()) {
        label.push(char::from(b'F' + repeats as u8));
    }
}

/// The dots of a label of `draw`: our own reading of the language, as there is no printer in a computer.
pub(crate) fn read(label: &[u8]) -> Option<Bitmap> {
    let text = std::str::from_utf8(label).ok()?;
    let number = |text: &str| text.parse::<usize>().ok();
    let width = number(text.split_once("^PW")?.1.lines().next()?)?;
    let mut picture = text.split_once("^GFA,")?.1.split_once("^FS")?.0.splitn(4, ',');
    let (_, total, stride) = (picture.next()?, number(picture.next()?)?, number(picture.next()?)?);
    if stride == 0 || stride != width.div_ceil(8) || !total.is_multiple_of(stride) {
        return None;
    }
    let digits = unpack(picture.next()?, stride * 2, total * 2)?;
    let bytes = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    Bitmap::from_bytes(width, total / stride, bytes)
}

/// The hexadecimal digits, `row` of them a row.
fn unpack(packed: &str, row: usize, total: usize) -> Option<Vec<u8>> {
    let mut digits: Vec<u8> = Vec::new();
    let mut repeats = 0;
    for letter in packed.bytes() {
        let left = row - digits.len() % row;
        match letter {
            b'G'..=b'Y' => repeats += usize::from(letter - b'F'),
            b'g'..=b'z' => repeats += 20 * usize::from(letter - b'f'),
            b',' => digits.extend(std::iter::repeat_n(0, left)),
            b'!' => digits.extend(std::iter::repeat_n(15, left)),
            b':' => {
                let begin = digits.len().checked_sub(row)?;
                digits.extend_from_within(begin..);
            }
            _ => {
                let digit = char::from(letter).to_digit(16)? as u8;
                digits.extend(std::iter::repeat_n(digit, repeats.max(1)));
                repeats = 0;
            }
        }
        if digits.len() > total {
            return None;
        }
    }
    (digits.len() == total).then_some(digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_picture_is_read_as_it_was(
            width in 1..900_usize,
            rows in prop::collection::vec(prop::collection::vec(prop_oneof![4 => Just(0_u8), 2 => Just(0xff), 1 => any::<u8>()], 113), 1..6),
        ) {
            let stride = width.div_ceil(8);
            let bytes: Vec<u8> = rows.iter().flat_map(|row| &row[..stride]).copied().collect();
            let bitmap = Bitmap::from_bytes(width, rows.len(), bytes).expect("as many bytes as dots need");
            prop_assert_eq!(read(&draw(&bitmap)), Some(bitmap));
        }
    }

    #[test]
    fn counts_are_those_of_the_language() {
        for (repeats, expected) in [
            (1, ""),
            (2, "H"),
            (19, "Y"),
            (20, "g"),
            (21, "gG"),
            (39, "gY"),
            (40, "h"),
            (400, "z"),
            (420, "zg"),
        ] {
            let mut label = String::new();
            count(repeats, &mut label);
            assert_eq!(label, expected, "{repeats}");
        }
    }
}
