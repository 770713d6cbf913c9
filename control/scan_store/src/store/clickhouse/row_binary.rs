//! The form RowBinary: values one after another, without names and signs between them.

use kernel::store::StoreError;

use super::client::failed;

/// Appends a length or a count, seven bits a byte, the lowest first.
fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Appends a `String`.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends a `Nullable(String)`.
pub(super) fn put_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        None => out.push(1),
        Some(text) => {
            out.push(0);
            put_bytes(out, text.as_bytes());
        }
    }
}

/// Appends an `Array(String)`.
pub(super) fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    put_length(out, texts.len());
    texts.iter().for_each(|text| put_bytes(out, text.as_bytes()));
}

/// Reads values from the begin of bytes.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Whether a row follows.
    pub(super) const fn is_more(&self) -> bool {
        !self.left.is_empty()
    }

    pub(super) fn int64(&mut self) -> Result<i64, StoreError> {
        self.fixed().map(i64::from_le_bytes)
    }

    pub(super) fn uint64(&mut self) -> Result<u64, StoreError> {
        self.fixed().map(u64::from_le_bytes)
    }

    pub(super) fn int32(&mut self) -> Result<i32, StoreError> {
        self.fixed().map(i32::from_le_bytes)
    }

    pub(super) fn uint32(&mut self) -> Result<u32, StoreError> {
        self.fixed().map(u32::from_le_bytes)
    }

    /// A `FixedString` of this length.
    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let (value, left) = self.left.split_first_chunk().ok_or_else(cut_off)?;
        self.left = left;
        Ok(*value)
    }

    /// A `String`.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], StoreError> {
        let length = self.length()?;
        let (value, left) = self.left.split_at_checked(length).ok_or_else(cut_off)?;
        self.left = left;
        Ok(value)
    }

    /// A `String` of text.
    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(failed)
    }

    /// A `Nullable(String)`.
    pub(super) fn optional(&mut self) -> Result<Option<String>, StoreError> {
        let [is_none] = self.fixed()?;
        if is_none == 1 { Ok(None) } else { self.text().map(Some) }
    }

    fn length(&mut self) -> Result<usize, StoreError> {
        let mut length = 0_u64;
        for shift in (0..63).step_by(7) {
            let [byte] = self.fixed()?;
            length |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(length).map_err(failed);
            }
        }
        Err(failed("a length in an answer of ClickHouse does not end"))
    }
}

fn cut_off() -> StoreError {
    failed("an answer of ClickHouse is cut off")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(texts in proptest::collection::vec("\\PC{0,300}", 0..5), number: i64) {
            let mut out = number.to_le_bytes().to_vec();
            for text in &texts {
                put_bytes(&mut out, text.as_bytes());
                put_optional(&mut out, Some(text));
                put_optional(&mut out, None);
            }
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.int64().unwrap(), number);
            for text in &texts {
                prop_assert_eq!(&reader.text().unwrap(), text);
                prop_assert_eq!(reader.optional().unwrap(), Some(text.clone()));
                prop_assert_eq!(reader.optional().unwrap(), None);
            }
            prop_assert!(!reader.is_more());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&bytes);
            while reader.is_more() {
                if reader.optional().is_err() || reader.bytes().is_err() || reader.uint32().is_err() {
                    break;
                }
            }
        }
    }
}
