//! Files of `waymark import`: any bytes are records, each of which asks for something or says what is wrong with it,
//! and the same ones in whatever parts the file is read.
#![no_main]

#[allow(dead_code)]
#[path = "../../../deploy/standalone/src/tools/import"]
mod import {
    mod encoding;
    mod records;
    mod rows;

    use std::io::{BufReader, Cursor};

    use encoding::decoded;
    use records::{Layout, MAX_RECORD, Record, Records};
    use rows::{Rows, delimiter};

    /// Reads a file as CSV and as JSON lines.
    pub(super) fn check(bytes: &[u8]) {
        let file = BufReader::with_capacity(7, Cursor::new(bytes.to_vec()));
        let mut input = decoded(Box::new(file)).unwrap();
        let mut text = Vec::new();
        input.read_to_end(&mut text).unwrap();
        let separator = delimiter(text.split(|byte| *byte == b'\n').next().unwrap_or_default());
        read(&text, Layout::Csv(separator), |first| Rows::csv(first, separator, Some("U".to_owned())).ok());
        read(&text, Layout::Ndjson, |_| Some(Rows::ndjson(None)));
    }

    /// Reads a text to its end, at once and in small parts.
    fn read(text: &[u8], layout: Layout, rows: impl FnOnce(Option<Record>) -> Option<Rows>) {
        let mut records = Records::new(text, layout).unwrap();
        let all: Vec<Record> = std::iter::from_fn(|| records.next().unwrap()).collect();
        assert_eq!(records.place().0, text.len() as u64, "no byte is left out");
        let mut parts = Records::new(BufReader::with_capacity(7, text), layout).unwrap();
        let same: Vec<Record> = std::iter::from_fn(|| parts.next().unwrap()).collect();
        assert_eq!(same, all);
        let mut all = all.into_iter();
        let rows = rows(all.next());
        for content in all.filter_map(|record| record.content.ok()) {
            assert!(content.len() <= MAX_RECORD);
            let _ = rows.as_ref().map(|rows| rows.parse(&content).map(|item| item.size()));
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| import::check(bytes));
