//! The manifest: a line of CSV for each code.

use crate::PrintItem;

/// The first line of a manifest; those of `Chunk::manifest` follow.
pub const MANIFEST_HEADER: &str = "index,serial,shortId,url,gtin,file,page,row,column,version,moduleMm\r\n";

/// Where a code was drawn. Counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) file: String,
    pub(crate) page: u64,
    /// Row and column, on sheets only.
    pub(crate) label: Option<(u32, u32)>,
}

/// Lines that are being collected.
pub(crate) struct Manifest(csv::Writer<Vec<u8>>);

impl Manifest {
    pub(crate) fn new() -> Self {
        Self(csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new()))
    }

    /// Adds the line of a code; `index` is counted from 0.
    pub(crate) fn add(
        &mut self,
        index: u64,
        item: &PrintItem,
        position: &Position,
        version: u8,
        module_nm: u32,
    ) -> Result<(), csv::Error> {
        let number = |number: u32| number.to_string();
        let (row, column) =
            position.label.map_or_else(Default::default, |(row, column)| (number(row), number(column)));
        self.0.write_record([
            (index + 1).to_string(),
            cell(item.serial.as_deref().unwrap_or_default()),
            cell(&item.short_id),
            cell(&item.url),
            cell(item.gtin.as_deref().unwrap_or_default()),
            cell(&position.file),
            position.page.to_string(),
            row,
            column,
            version.to_string(),
            (f64::from(module_nm) / 1e6).to_string(),
        ])
    }

    pub(crate) fn finish(self) -> String {
        let bytes = self.0.into_inner().unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }
}

/// The fields of a line of a manifest, as they were before they were written.
///
/// The line may have line breaks within quotes. Any text has fields; those of a line that no manifest has mean nothing.
#[must_use]
pub fn manifest_fields(line: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut is_quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // Two quotes are one.
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(plain(std::mem::take(&mut field))),
            letter => field.push(letter),
        }
    }
    fields.push(plain(field));
    fields
}

/// A text that spreadsheets show as it is: an apostrophe before what they would take for a formula.
fn cell(text: &str) -> String {
    if is_formula(text) { format!("'{text}") } else { text.to_owned() }
}

/// The text of a cell.
fn plain(text: String) -> String {
    match text.strip_prefix('\'') {
        Some(rest) if is_formula(rest) => rest.to_owned(),
        Some(_) | None => text,
    }
}

/// Whether spreadsheets take a text for a formula, or would without the apostrophes before it.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_safe_for_spreadsheets() {
        let item = PrintItem {
            serial: Some("=HYPERLINK(\"http://x\",\"y\")".to_owned()),
            short_id: "-K7".to_owned(),
            url: "HTTPS://TN.GG/-K7".to_owned(),
            gtin: None,
        };
        let mut manifest = Manifest::new();
        let position = Position { file: "codes.pdf".to_owned(), page: 2, label: Some((1, 3)) };
        manifest.add(9, &item, &position, 2, 423_333).expect("a vector takes all");
        let position = Position { file: "codes.zpl".to_owned(), page: 11, label: None };
        manifest.add(10, &item, &position, 2, 500_000).expect("a vector takes all");
        let expected = "10,\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\",'-K7,HTTPS://TN.GG/-K7,,codes.pdf,2,1,3,2,0.423333\r\n\
                        11,\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\",'-K7,HTTPS://TN.GG/-K7,,codes.zpl,11,,,2,0.5\r\n";
        assert_eq!(manifest.finish(), expected);
        // One comma stands in the quotes of the serial.
        assert_eq!(
            MANIFEST_HEADER.split(',').count(),
            expected.lines().nth(1).expect("two").split(',').count() - 1
        );
    }

    #[test]
    fn a_line_gives_what_was_written() {
        for serial in [
            "A1",
            "=1+1",
            "'=1",
            "''-",
            "'",
            "\rA",
            "\t",
            " A ",
            "a,\"b\"",
            "\"",
            "two\r\nlines\n",
            "\u{a0}x",
        ] {
            let item = PrintItem {
                serial: Some(serial.to_owned()),
                short_id: "-K7".to_owned(),
                url: "HTTPS://TN.GG/-K7".to_owned(),
                gtin: None,
            };
            let mut manifest = Manifest::new();
            let position = Position { file: "codes.zpl".to_owned(), page: 1, label: None };
            manifest.add(0, &item, &position, 2, 500_000).expect("a vector takes all");
            let written = manifest.finish();
            let fields = manifest_fields(written.strip_suffix("\r\n").expect("it ends the line"));
            let expected =
                ["1", serial, "-K7", "HTTPS://TN.GG/-K7", "", "codes.zpl", "1", "", "", "2", "0.5"];
            assert_eq!(fields, expected, "{written:?}");
        }
    }
}
