//! Text encodings of import files: UTF-8, and UTF-16 where a byte order mark says so.

use std::io::{self, BufRead, BufReader, Read};

/// Encoding of a file, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, with a byte order mark or without.
    Utf8,
    /// UTF-16 with the low byte first, as spreadsheets on Windows write it.
    Utf16Le,
    /// UTF-16 with the high byte first.
    Utf16Be,
}

impl Encoding {
    /// Reads the byte order mark; what begins without one is UTF-8.
    #[must_use]
    pub fn detect(start: &[u8]) -> Self {
        match start {
            [0xFF, 0xFE, ..] => Self::Utf16Le,
            [0xFE, 0xFF, ..] => Self::Utf16Be,
            _ => Self::Utf8,
        }
    }
}

/// A reader of UTF-8, whatever the encoding of `input`.
///
/// # Errors
/// The first bytes cannot be read.
pub fn decoded(mut input: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    let unit = match Encoding::detect(input.fill_buf()?) {
        Encoding::Utf8 => return Ok(input),
        Encoding::Utf16Le => u16::from_le_bytes,
        Encoding::Utf16Be => u16::from_be_bytes,
    };
    Ok(Box::new(BufReader::new(Utf16 { input, unit, high: None, text: Vec::new(), given: 0 })))
}

/// Turns UTF-16 into UTF-8; what is no character becomes U+FFFD, the byte order mark stays.
struct Utf16<R> {
    input: R,
    unit: fn([u8; 2]) -> u16,
    /// The first half of a pair of surrogates.
    high: Option<u16>,
    text: Vec<u8>,
    /// Bytes of `text` that were read.
    given: usize,
}

impl<R: BufRead> Utf16<R> {
    fn push(&mut self, units: &[u16]) {
        for letter in char::decode_utf16(units.iter().copied()) {
            let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Decodes one more unit; `false` at the end.
    fn step(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 2];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if filled < 2 {
            if let Some(high) = self.high.take() {
                self.push(&[high]);
            }
            if filled == 1 {
                self.push(&[0xD800]);
            }
            return Ok(false);
        }
        let unit = (self.unit)(bytes);
        let is_high = (0xD800..0xDC00).contains(&unit);
        match self.high.take() {
            Some(high) if is_high => {
                self.push(&[high]);
                self.high = Some(unit);
            }
            Some(high) => self.push(&[high, unit]),
            None if is_high => self.high = Some(unit),
            None => self.push(&[unit]),
        }
        Ok(true)
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() {
            self.text.clear();
            self.given = 0;
            while self.text.len() < out.len() && self.step()? {}
        }
        let ready = self.text.get(self.given..).unwrap_or_default();
        let count = ready.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..count), ready.get(..count)) {
            to.copy_from_slice(from);
        }
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_is_read_as_utf_8() {
        let text = "name;größe\r\nü😀,\u{10FFFF}\n";
        let units: Vec<u16> = std::iter::once(0xFEFF).chain(text.encode_utf16()).collect();
        for (bytes, expected) in [
            (units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>(), Encoding::Utf16Le),
            (units.iter().flat_map(|unit| unit.to_be_bytes()).collect(), Encoding::Utf16Be),
            (format!("\u{feff}{text}").into_bytes(), Encoding::Utf8),
        ] {
            let encoding = Encoding::detect(&bytes);
            let mut input = decoded(Box::new(io::Cursor::new(bytes))).unwrap();
            let mut found = String::new();
            input.read_to_string(&mut found).unwrap();
            assert_eq!((found.trim_start_matches('\u{feff}'), encoding), (text, expected));
        }
    }

    #[test]
    fn broken_utf_16_has_replacement_characters() {
        // A high surrogate alone, a low one alone, half a unit at the end.
        let bytes = [0xFF, 0xFE, 0x00, 0xD8, b'a', 0, 0x00, 0xDC, b'b', 0, b'c'];
        let mut input = decoded(Box::new(io::Cursor::new(bytes))).unwrap();
        let mut found = String::new();
        input.read_to_string(&mut found).unwrap();
        assert_eq!(found, "\u{feff}\u{fffd}a\u{fffd}b\u{fffd}");
    }
}
