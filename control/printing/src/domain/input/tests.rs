use proptest::prelude::*;

use super::*;

/// A valid GTIN, with 13 digits.
const GTIN: &str = "4006381333931";

fn input(form: Form, text: &[u8]) -> Input {
    Input::new("blob".to_owned(), text.len() as u64, form, None)
}

/// All lines of a file, and its faults; or why it cannot be read.
fn read(form: Form, text: &[u8]) -> Result<(Vec<Row>, Vec<String>), String> {
    let mut input = input(form, text);
    let mut rows = Vec::new();
    while let Some(window) = input.window() {
        let lines = input.take(&text[window.start as usize..window.end as usize])?;
        rows.extend(lines.rows);
        input.note(lines.faults);
    }
    Ok((rows, input.faults))
}

fn row(line: u64, short_id: Option<&str>, serial: Option<&str>, gtin: Option<&str>) -> Row {
    let text = |value: Option<&str>| value.map(str::to_owned);
    Row { line, short_id: text(short_id), serial: text(serial), gtin: text(gtin), ..Row::default() }
}

#[test]
fn both_forms_name_codes_by_short_id_or_serial() {
    let expected = vec![
        row(2, Some("K7"), Some("A,1"), None),
        row(4, None, Some("B"), Some("04006381333931")),
        row(5, Some("k-8"), None, None),
    ];
    let csv = format!("\u{feff}Short_ID, serial,GTIN\r\nK7,\"A,1\",\n\n,B,{GTIN}\nk-8");
    assert_eq!(read(Form::Csv, csv.as_bytes()), Ok((expected.clone(), vec![])));
    let lines = format!(
        "\n{{\"shortId\":\"K7\",\"serial\":\"A,1\",\"gtin\":null}}\n\n{{\"serial\":\"B\",\"gtin\":\"{GTIN}\"}}\n{{\"shortId\":\"k-8\"}}\n"
    );
    assert_eq!(read(Form::Ndjson, lines.as_bytes()), Ok((expected, vec![])));
}

#[test]
fn every_bad_line_is_named() {
    for (form, text, expected) in [
        (
            Form::Csv,
            "shortId\nA B\n# not read\n\"\nK7\nK8,1\n",
            vec!["line 2: \"A B\" is no", "line 4: it has a quote", "line 6: it has more"],
        ),
        (
            Form::Csv,
            "serial,gtin\n,1\nA,12345678\n",
            vec!["line 2: it has neither", "line 3: \"12345678\" is no GTIN"],
        ),
        (
            Form::Ndjson,
            "[]\n{\"colour\":\"red\"}\n{\"serial\":1}\n{}\n{\"serial\":\"\"}",
            vec![
                "line 1: it is no JSON object",
                "line 2: it has the member \"colour\"",
                "line 3: serial must be a string",
                "line 4: it has neither",
                "line 5: the serial \"\" must",
            ],
        ),
    ] {
        let (_, faults) = read(form, text.as_bytes()).unwrap();
        assert_eq!(faults.len(), expected.len(), "{text}: {faults:?}");
        for (fault, part) in faults.iter().zip(expected) {
            assert!(fault.starts_with(part), "{text}: {fault}");
        }
    }
    let (rows, faults) = read(Form::Csv, b"shortId\n\xff\nK7\n").unwrap();
    assert_eq!((rows.len(), faults.as_slice()), (1, &["line 2: it is not UTF-8.".to_owned()][..]));
    let many = format!("shortId\n{}", "/\n".repeat(2_000));
    assert_eq!(read(Form::Csv, many.as_bytes()).unwrap().1.len(), MAX_FAULTS);
}

#[test]
fn what_is_no_such_file_is_refused_as_a_whole() {
    let cases: [(&[u8], &str); 6] = [
        (b"PK\x03\x04....", "ZIP"),
        (b"\xff\xfea\0", "UTF-16"),
        (b"colour,shortId\nred,K7\n", "\"colour\""),
        (b"shortId,Short ID\n", "twice"),
        (b"gtin\n1\n", "neither a column"),
        (b"\n\n", "no line that names"),
    ];
    for (text, expected) in cases {
        let refused = read(Form::Csv, text).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
    let long = vec![b'A'; WINDOW_BYTES as usize + 1];
    assert!(read(Form::Ndjson, &long).unwrap_err().contains("longer than"));
}

#[test]
fn a_large_file_is_read_window_by_window() {
    let count = 60_000;
    let text: String =
        std::iter::once("serial\n".to_owned()).chain((1..=count).map(|n| format!("S{n:06}\n"))).collect();
    assert!(text.len() as u64 > WINDOW_BYTES);
    let (rows, faults) = read(Form::Csv, text.as_bytes()).unwrap();
    assert_eq!((rows.len(), faults), (count, vec![]));
    for (row, number) in rows.iter().zip(1_u64..) {
        assert_eq!((row.line, row.serial.clone()), (number + 1, Some(format!("S{number:06}"))));
    }
    // Where it was left, as it is stored, it goes on.
    let mut first = input(Form::Csv, text.as_bytes());
    let window = first.window().unwrap();
    first.take(&text.as_bytes()[..window.end as usize]).unwrap();
    let stored: Input = serde_json::from_value(serde_json::to_value(&first).unwrap()).unwrap();
    assert_eq!(stored, first);
    // Behind the names of the columns.
    assert!(!stored.is_over() && stored.line == WINDOW_LINES as u64 + 1);
}

#[test]
fn empty_lines_and_comments_take_no_steps() {
    let text = format!("shortId\n{}K7\n", "\n#\n".repeat(100_000));
    let mut input = input(Form::Csv, text.as_bytes());
    let mut rows = Vec::new();
    let mut windows = 0;
    while let Some(window) = input.window() {
        rows.extend(input.take(&text.as_bytes()[window.start as usize..window.end as usize]).unwrap().rows);
        windows += 1;
    }
    assert_eq!((windows, rows), (2, vec![row(200_002, Some("K7"), None, None)]));
}

#[test]
fn a_manifest_gives_what_was_printed() {
    let text = format!("{}7,'-A,'-K7,HTTPS://TN.GG/-K7,,codes.pdf,2,1,3,2,0.5\r\n", print::MANIFEST_HEADER);
    let (rows, faults) = read(Form::Manifest, text.as_bytes()).unwrap();
    let expected =
        Row { index: 7, url: Some("HTTPS://TN.GG/-K7".to_owned()), ..row(2, Some("-K7"), Some("-A"), None) };
    assert_eq!((rows, faults), (vec![expected], vec![]));
    // A serial is any text: with line breaks, with spaces at its ends, and with an apostrophe of its own.
    let text = format!(
        "{}1,\"A,\r\n\"\"1\"\"\",K7,HTTPS://TN.GG/K7,,f,1,,,2,0.5\r\n2, B ,K8,HTTPS://TN.GG/K8,,f,2,,,2,0.5\r\n\
         3,''=C,K9,HTTPS://TN.GG/K9,,f,3,,,2,0.5\r\n",
        print::MANIFEST_HEADER
    );
    let (rows, faults) = read(Form::Manifest, text.as_bytes()).unwrap();
    let serials: Vec<Option<&str>> = rows.iter().map(|row| row.serial.as_deref()).collect();
    assert_eq!((serials, faults), (vec![Some("A,\r\n\"1\""), Some(" B "), Some("'=C")], vec![]));
}

proptest! {
    #[test]
    fn any_bytes_are_lines_or_faults(
        text in prop::collection::vec(prop_oneof![3 => Just(b'\n'), 3 => Just(b','), 1 => Just(b'"'), 6 => any::<u8>()], 1..400),
        form in prop_oneof![Just(Form::Csv), Just(Form::Ndjson), Just(Form::Manifest)],
    ) {
        // With a header and without one.
        for text in [text.clone(), [b"shortId,serial,gtin\n".as_slice(), text.as_slice()].concat()] {
            if let Ok((rows, faults)) = read(form, &text) {
                let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
                prop_assert!(rows.len() + faults.len() <= lines);
                prop_assert!(rows.iter().all(|row| row.line <= lines as u64));
            }
        }
    }
}
