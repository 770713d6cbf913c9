//! Compact encoding of numbers and texts. Reading never panics, whatever the bytes are.

/// Writes a number, seven bits a byte, the lowest first.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a number that may be negative; small ones of both signs stay short.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Writes a text behind its length.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Takes a number.
pub(super) fn number(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(input)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Takes a number that may be negative.
pub(super) fn signed(input: &mut &[u8]) -> Option<i64> {
    let number = number(input)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

/// Takes a text behind its length.
pub(super) fn text<'i>(input: &mut &'i [u8]) -> Option<&'i [u8]> {
    let length = usize::try_from(number(input)?).ok()?;
    take(input, length)
}

/// Takes `length` bytes.
pub(super) fn take<'i>(input: &mut &'i [u8], length: usize) -> Option<&'i [u8]> {
    let (head, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(head)
}

/// Takes one byte.
pub(super) fn byte(input: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = input.split_first()?;
    *input = rest;
    Some(*byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_and_texts_round_trip(unsigned: u64, mixed: i64, letters: Vec<u8>) {
            let mut out = Vec::new();
            put_number(&mut out, unsigned);
            put_signed(&mut out, mixed);
            put_text(&mut out, &letters);
            let input = &mut &*out;
            prop_assert_eq!((number(input), signed(input), text(input)), (Some(unsigned), Some(mixed), Some(&*letters)));
            prop_assert_eq!((input.len(), byte(input)), (0, None));
        }
    }
}
