//! Valid and invalid files of ids, in one piece and byte by byte.

use proptest::prelude::*;

use super::*;

fn id(text: &str) -> Entry {
    Entry::Id(text.to_owned())
}

fn bad(text: &str, line: u64, fault: &str) -> Entry {
    Entry::Bad { text: text.to_owned(), fault: format!("a.csv, line {line}: {fault}.") }
}

/// The entries of a file that is fed in parts of `step` bytes.
fn read(bytes: &[u8], key: Option<&str>, step: usize) -> Result<Vec<Entry>, NoText> {
    let (mut lines, mut entries) = (Lines::new("a.csv", key), Vec::new());
    for part in bytes.chunks(step) {
        lines.feed(part, &mut entries)?;
    }
    lines.finish(&mut entries)?;
    Ok(entries)
}

fn check(bytes: &[u8], key: Option<&str>, expected: &[Entry], why: &str) {
    for step in [1, 2, 3, 7, 1_000_000] {
        assert_eq!(read(bytes, key, step).as_deref(), Ok(expected), "{why}, {step} bytes at a time");
    }
}

#[test]
fn files_of_every_make_are_read() {
    let ab = [id("A"), id("B")];
    for (text, expected, why) in [
        ("A\nB\n", ab.as_slice(), "plain"),
        ("A\nB", &ab, "no end of the last line"),
        ("A\r\nB\r\n", &ab, "ends of Windows"),
        ("A\rB\r", &ab, "ends of old machines"),
        ("\u{feff}A\nB\n", &ab, "a mark of the byte order"),
        ("\u{feff}id\r\nA\r\nB", &ab, "with it, a header"),
        ("id\nA\nB\n", &ab, "a header"),
        ("\"Thng ID\"\nA\nB\n", &ab, "a quoted header with a space"),
        ("name,thng_id,color\nx,A,red\ny,B\n", &ab, "the column that the header names"),
        ("A,x\nB,y\n", &ab, "further columns without a header"),
        ("\"A\",\"x,y\"\n \"B\" ,z\n", &ab, "quotes"),
        ("\n\n  \nA\n\t\n,,,\nB\n\n", &ab, "blank lines"),
        ("# made by us\nA\n#B\nB\n", &ab, "comments"),
        ("  A  \nB\t\n", &ab, "space around"),
        ("", &[], "nothing"),
        ("\u{feff}", &[], "a mark and nothing"),
        ("\r\n\r\n", &[], "blank lines only"),
        ("id\n", &[], "a header only"),
        ("A", &ab[..1], "one byte"),
        ("\"a\"\"b\"\n\"#x\"\n\"\"\"\"\n", &[id("a\"b"), id("#x"), id("\"")], "two quotes are one"),
        ("A\nA\n", &[id("A"), id("A")], "twice"),
        ("A\nid\n", &[id("A"), id("id")], "no header but in the first record"),
        ("gs1:21:1;x\n", &[id("gs1:21:1;x")], "a comma is what separates"),
    ] {
        check(text.as_bytes(), None, expected, why);
    }
    check(b"sn,id\nA,1\nB,2\n", Some("SN"), &ab, "the key of the input goes before other names");
    check(b"gs1:21\nA\nB\n", Some("gs1:21"), &ab, "a key with a colon");
}

#[test]
fn an_invalid_line_is_reported_and_reading_continues() {
    let long = "x".repeat(MAX_LINE_BYTES + 1);
    for (text, expected, why) in [
        (
            b"A\n\"B\nC\n".to_vec(),
            vec![id("A"), bad("\"B", 2, "has a quote that is not closed"), id("C")],
            "an open quote takes no further line",
        ),
        (
            b"A\n\"B\"x\nC".to_vec(),
            vec![id("A"), bad("\"B\"x", 2, "has text behind a closing quote"), id("C")],
            "behind a quote",
        ),
        (
            b"A\n\xff\xfe\xfd\nC\n".to_vec(),
            vec![id("A"), bad("\u{fffd}\u{fffd}\u{fffd}", 2, "is not UTF-8"), id("C")],
            "no text",
        ),
        (
            b"name,id\nx,A\ny\nz,\nw,B\n".to_vec(),
            vec![id("A"), bad("y", 3, "holds no id"), bad("z,", 4, "holds no id"), id("B")],
            "no id",
        ),
        (
            format!("A\r\n{long}\r\nC").into_bytes(),
            vec![id("A"), bad(&"x".repeat(64), 2, "is longer than 65536 bytes"), id("C")],
            "too long",
        ),
        (
            long.clone().into_bytes(),
            vec![bad(&"x".repeat(64), 1, "is longer than 65536 bytes")],
            "too long, without an end",
        ),
    ] {
        check(&text, None, &expected, why);
    }
    let longest = "x".repeat(MAX_LINE_BYTES);
    check(longest.as_bytes(), None, &[Entry::Id(longest.clone())], "as long as may be");
}

#[test]
fn invalid_utf_8_is_reported() {
    for (bytes, kind) in [
        (b"PK\x03\x04\x14\x00".as_slice(), NoText::Zip),
        (b"PK\x05\x06", NoText::Zip),
        (b"\x1f\x8b\x08\x00", NoText::Gzip),
        (b"\xff\xfeA\x00", NoText::Utf16),
        (b"\xfe\xff", NoText::Utf16),
    ] {
        for step in [1, 3, 100] {
            assert_eq!(read(bytes, None, step), Err(kind));
        }
    }
}

#[test]
fn a_line_of_100_megabytes_takes_the_memory_of_one() {
    let (mut lines, mut entries) = (Lines::new("a.csv", None), Vec::new());
    let part = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        lines.feed(&part, &mut entries).unwrap();
        assert!(lines.part.capacity() <= 2 * MAX_LINE_BYTES);
    }
    lines.feed(b"\nA\n", &mut entries).unwrap();
    lines.finish(&mut entries).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1], id("A"));
}

proptest! {
    /// The crate of the field, as an oracle for single lines without space around fields.
    #[test]
    fn fields_are_those_of_the_csv_crate(
        fields in proptest::collection::vec("[a-zA-Z0-9:.ü#\",;']{0,12}", 1..5)
    ) {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        writer.write_record(&fields).unwrap();
        let line = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        prop_assert_eq!(split(line.trim_end_matches('\n')), Ok(fields.iter().map(Cow::from).collect()));
    }

    #[test]
    fn chunk_boundaries_do_not_change_the_result(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        step in 1usize..40,
    ) {
        prop_assert_eq!(read(&bytes, None, step), read(&bytes, None, 1_000));
    }

    #[test]
    fn each_entry_is_an_id_or_says_why(text in "[ -~\r\n\t\",#]{0,200}") {
        for entry in read(text.as_bytes(), None, 16).unwrap_or_default() {
            match entry {
                Entry::Id(id) => prop_assert!(!id.trim().is_empty()),
                Entry::Bad { fault, .. } => prop_assert!(fault.starts_with("a.csv, line ") && fault.ends_with('.')),
            }
        }
    }
}
