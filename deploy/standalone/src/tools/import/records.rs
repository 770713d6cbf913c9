//! Cuts a file into records: CSV with quotes over several lines, or one JSON object a line.
//!
//! Memory stays flat whatever the file holds: a record has at most [`MAX_RECORD`] bytes. A record that
//! is longer, or a quote that is not closed within so many bytes, costs its own first line only; reading
//! goes on with the next one.

use std::{
    collections::VecDeque,
    io::{self, BufRead},
};

/// Longest record in bytes: a target has at most 2,048, which leaves room for six columns like it.
pub(super) const MAX_RECORD: usize = 16 << 10;

/// How records end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// At a line's end that is not inside quotes; fields are separated by this byte.
    Csv(u8),
    /// At every line's end.
    Ndjson,
}

/// One record as it stands in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Its first line, counted from 1.
    pub(super) line: u64,
    /// Its bytes without the line's end, or what is wrong with it.
    pub(super) content: Result<Vec<u8>, Fault>,
}

/// Why a record cannot be read; the first bytes are kept for the report.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// What is wrong.
    pub(super) reason: String,
    /// Its first bytes.
    pub(super) start: Vec<u8>,
}

/// One line of the file.
struct Line {
    /// The bytes without the line's end; cut at [`MAX_RECORD`].
    bytes: Vec<u8>,
    /// How many bytes it takes in the file, with its end.
    size: u64,
    too_long: bool,
}

/// Reads records, and knows where in the file it is.
pub(super) struct Records<R> {
    input: R,
    layout: Layout,
    /// Lines that were read ahead for a quote that was not closed.
    ahead: VecDeque<Line>,
    offset: u64,
    line: u64,
}

impl<R: BufRead> Records<R> {
    /// Reads from the start of a file, over a byte order mark if there is one.
    pub(super) fn new(mut input: R, layout: Layout) -> io::Result<Self> {
        let mark = input.fill_buf()?.starts_with(b"\xEF\xBB\xBF");
        if mark {
            input.consume(3);
        }
        Ok(Self { input, layout, ahead: VecDeque::new(), offset: if mark { 3 } else { 0 }, line: 0 })
    }

    /// Bytes and lines behind the last record.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.offset, self.line)
    }

    /// The next record that is not blank; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            let Some(first) = self.take_line()? else { return Ok(None) };
            let line = self.line;
            if first.too_long {
                let reason = format!("a record has at most {MAX_RECORD} bytes");
                return Ok(Some(Record { line, content: Err(Fault::new(reason, first.bytes)) }));
            }
            if first.bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let content = match self.layout {
                Layout::Ndjson => Ok(first.bytes),
                Layout::Csv(delimiter) => self.close_quotes(first.bytes, delimiter)?,
            };
            return Ok(Some(Record { line, content }));
        }
    }

    /// Adds lines to `record` until its quotes are closed.
    fn close_quotes(&mut self, mut record: Vec<u8>, delimiter: u8) -> io::Result<Result<Vec<u8>, Fault>> {
        let first_len = record.len();
        let mut quotes = Quotes::default();
        quotes.read(&record, delimiter);
        let mut taken = Vec::new();
        while quotes.open() {
            let next = match self.ahead.pop_front() {
                Some(line) => Some(line),
                None => self.read_line()?,
            };
            let fits = next
                .as_ref()
                .is_some_and(|line| !line.too_long && record.len() + line.bytes.len() < MAX_RECORD);
            if !fits {
                // The lines that were taken are records of their own.
                taken.extend(next);
                for line in taken.into_iter().rev() {
                    self.ahead.push_front(line);
                }
                record.truncate(first_len);
                let reason = format!("a quote is not closed within {MAX_RECORD} bytes");
                return Ok(Err(Fault::new(reason, record)));
            }
            if let Some(line) = next {
                record.push(b'\n');
                record.extend_from_slice(&line.bytes);
                quotes.read(b"\n", delimiter);
                quotes.read(&line.bytes, delimiter);
                taken.push(line);
            }
        }
        for line in &taken {
            self.offset += line.size;
            self.line += 1;
        }
        Ok(Ok(record))
    }

    /// The next line, counted.
    fn take_line(&mut self) -> io::Result<Option<Line>> {
        let line = match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.read_line()?,
        };
        if let Some(line) = &line {
            self.offset += line.size;
            self.line += 1;
        }
        Ok(line)
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        let mut line = Line { bytes: Vec::new(), size: 0, too_long: false };
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let room = MAX_RECORD.saturating_sub(line.bytes.len());
            line.too_long |= part.len() > room;
            line.bytes.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            let used = part.len() + usize::from(end.is_some());
            line.size += used as u64;
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if line.size == 0 {
            return Ok(None);
        }
        if line.bytes.last() == Some(&b'\r') {
            line.bytes.pop();
        }
        Ok(Some(line))
    }
}

impl Fault {
    fn new(reason: String, mut start: Vec<u8>) -> Self {
        start.truncate(256);
        Self { reason, start }
    }
}

/// Where in the quoting of CSV a reader is: a quote counts at the start of a field only.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    #[default]
    FieldStart,
    Plain,
    Quoted,
    /// Behind a quote inside quotes: the end of the field, or half of a doubled one.
    Closing,
}

impl Quotes {
    fn read(&mut self, bytes: &[u8], delimiter: u8) {
        for byte in bytes {
            *self = match (*self, byte) {
                (Self::Quoted, b'"') => Self::Closing,
                (Self::Quoted, _) | (Self::FieldStart | Self::Closing, b'"') => Self::Quoted,
                (Self::FieldStart | Self::Plain | Self::Closing, byte)
                    if *byte == delimiter || *byte == b'\n' =>
                {
                    Self::FieldStart
                }
                (Self::FieldStart | Self::Plain | Self::Closing, _) => Self::Plain,
            };
        }
    }

    fn open(self) -> bool {
        self == Self::Quoted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(text: &[u8], layout: Layout) -> Vec<Record> {
        let mut records = Records::new(text, layout).unwrap();
        std::iter::from_fn(|| records.next().unwrap()).collect()
    }

    fn lines(text: &str, layout: Layout) -> Vec<(u64, Result<String, String>)> {
        let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        read_all(text.as_bytes(), layout)
            .into_iter()
            .map(|record| (record.line, record.content.map(text_of).map_err(|fault| text_of(fault.start))))
            .collect()
    }

    #[test]
    fn records_are_cut_where_quotes_allow() {
        let ok = |line, text: &str| (line, Ok(text.to_owned()));
        for (text, expected, why) in [
            ("\u{feff}a,b\r\n1,2\r\n", vec![ok(1, "a,b"), ok(2, "1,2")], "a mark and CRLF are no content"),
            ("a\n\n  \nb", vec![ok(1, "a"), ok(4, "b")], "blank lines count and give nothing"),
            ("a,\"x\ny\",b\nc", vec![ok(1, "a,\"x\ny\",b"), ok(3, "c")], "a quoted field holds a line's end"),
            ("\"a\"\"\nb\"\nc", vec![ok(1, "\"a\"\"\nb\""), ok(3, "c")], "a doubled quote closes nothing"),
            ("5\" pipe\nc", vec![ok(1, "5\" pipe"), ok(2, "c")], "a quote inside a plain field is a letter"),
            ("\"a\" x\"\nc", vec![ok(1, "\"a\" x\""), ok(2, "c")], "behind a closed quote all is plain"),
            (
                "\"a\nb\nc",
                vec![(1, Err("\"a".to_owned())), ok(2, "b"), ok(3, "c")],
                "an open quote costs one line",
            ),
        ] {
            assert_eq!(lines(text, Layout::Csv(b',')), expected, "{why}: {text:?}");
        }
        assert_eq!(lines("{\"a\":\n", Layout::Ndjson), [ok(1, "{\"a\":")], "JSON lines know no quotes");
    }

    #[test]
    fn a_long_line_costs_itself_alone() {
        let text = format!("a\n{}\n\"{}\nb\n", "x".repeat(MAX_RECORD * 5), "y\n".repeat(MAX_RECORD));
        let records = read_all(text.as_bytes(), Layout::Csv(b','));
        assert!(records[1].content.is_err() && records[2].content.is_err());
        assert_eq!(records[3].content.as_deref(), Ok(&b"y"[..]));
        assert_eq!(records.last().unwrap().content.as_deref(), Ok(&b"b"[..]));
        assert_eq!(records.last().unwrap().line, 4 + MAX_RECORD as u64);
    }

    proptest! {
        #[test]
        fn records_are_those_of_the_csv_crate(
            rows in proptest::collection::vec(proptest::collection::vec("[a\",\n\r ]{0,6}", 2..4), 1..8),
        ) {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            // A row of nothing but blanks would count as a blank line.
            for row in &rows {
                writer.write_record(std::iter::once("k").chain(row.iter().map(String::as_str))).unwrap();
            }
            let text = writer.into_inner().unwrap();
            let found = read_all(&text, Layout::Csv(b','));
            prop_assert_eq!(found.len(), rows.len());
        }
    }
}
