//! Valid and hostile archives.

use std::io::{Cursor, Write};

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::*;

/// An archive of these files.
fn archive(files: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in files {
        if name.ends_with('/') {
            writer.add_directory(*name, options).unwrap();
        } else {
            writer.start_file(*name, options).unwrap();
            writer.write_all(bytes).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    archive(files, CompressionMethod::Deflated)
}

fn entries(bytes: &[u8]) -> Result<Vec<Entry>, ArchiveError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let mut found = Vec::new();
    read(file, None, |part| {
        found.extend(part);
        true
    })?;
    Ok(found)
}

fn fault(bytes: &[u8]) -> String {
    match entries(bytes) {
        Ok(found) => panic!("{} entries were read", found.len()),
        Err(error) => error.to_string(),
    }
}

fn ids(texts: &[&str]) -> Vec<Entry> {
    texts.iter().map(|text| Entry::Id((*text).to_owned())).collect()
}

#[test]
fn the_files_of_an_archive_are_read_in_its_order() {
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let files: &[(&str, &[u8])] = &[
            ("b.csv", b"id\r\nB1\r\nB2"),
            ("folder/", b""),
            ("folder/a.CSV", b"\xef\xbb\xbfA1\n"),
            ("__MACOSX/._a.csv", b"\x00\x05\x16\x07"),
            (".DS_Store", b"x"),
            ("empty.csv", b""),
            ("notes.txt", b"C1\n\"C2\n"),
        ];
        let mut expected = ids(&["B1", "B2", "A1", "C1"]);
        let fault = "notes.txt, line 2: has a quote that is not closed.".to_owned();
        expected.push(Entry::Bad { text: "\"C2".to_owned(), fault });
        assert_eq!(entries(&archive(files, method)).unwrap(), expected);
    }
    // Bytes before the archive, as of one that unpacks itself.
    let moved = [b"#!/bin/sh\n".as_slice(), &packed(&[("a.csv", b"A")])].concat();
    assert_eq!(entries(&moved).unwrap(), ids(&["A"]));
}

#[test]
fn hostile_archives_are_refused_with_a_reason() {
    let honest = packed(&[("a.csv", b"A\nB\n")]);
    let many: Vec<String> = (0..10_000).map(|n| format!("{n}.csv")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), b"A\n".as_slice())).collect();
    let mut encrypted = honest.clone();
    let at = encrypted.windows(4).position(|four| four == ENTRY).unwrap();
    encrypted[at + 8] |= 1;
    encrypted[6] |= 1;
    let mut liar = honest.clone();
    let end = liar.len() - END_BYTES;
    liar[end + 10..end + 12].copy_from_slice(&5_u16.to_le_bytes());
    let mut vast = honest.clone();
    vast[end + 12..end + 16].copy_from_slice(&u32::MAX.to_le_bytes());
    let commented = [honest.as_slice(), b"PK\x05\x06 more"].concat();
    for (bytes, part, why) in [
        (Vec::new(), "is no ZIP archive", "nothing"),
        (b"A\nB\n".to_vec(), "is no ZIP archive", "a CSV file"),
        (packed(&[]), "holds no CSV file", "no file"),
        (packed(&[("folder/", b"")]), "holds no CSV file", "a folder only"),
        (packed(&many), "holds more than 100 files", "10,000 files"),
        (packed(&[("../a.csv", b"A")]), "leads out of it", "up"),
        (packed(&[("x/../../a.csv", b"A")]), "leads out of it", "down and up"),
        (packed(&[("/etc/a.csv", b"A")]), "leads out of it", "from the root"),
        (packed(&[("..\\a.csv", b"A")]), "leads out of it", "up, on Windows"),
        (packed(&[("c:a.csv", b"A")]), "leads out of it", "another disk"),
        (packed(&[("a.zip", &honest)]), "holds a.zip, which is no CSV file", "an archive in it"),
        (packed(&[("a.csv", &honest)]), "holds a.csv, which is a ZIP archive", "an archive by another name"),
        (packed(&[("a.exe", b"A")]), "holds a.exe, which is no CSV file", "a program"),
        (packed(&[("a.csv", &vec![b'\n'; 8 << 20])]), "more than 100 times its size", "a bomb"),
        (encrypted, "is encrypted", "encrypted"),
        (honest[..honest.len() - 10].to_vec(), "is no ZIP archive, or is cut off", "cut at the end"),
        (honest[honest.len() / 2..].to_vec(), "is damaged or cut off", "cut at the begin"),
        (liar, "is damaged or cut off", "more files than there are"),
        (vast, "is damaged or cut off", "a directory larger than the file"),
        (commented, "is no ZIP archive", "two ends"),
    ] {
        let found = fault(&bytes);
        assert!(found.contains(part), "{why}: {found}");
    }
}

/// As other programs write it: `zip -fz` of one file.
const ZIP64: &[u8] = include_bytes!("../../../../../tests/fixtures/jobs/zip64.zip");
/// As other programs write it: `zip -P secret`.
const ENCRYPTED_FILE: &[u8] = include_bytes!("../../../../../tests/fixtures/jobs/encrypted.zip");

#[test]
fn zip64_sizes_are_read_from_their_fields() {
    let id = "UKXAGyEf8SQ5eTDmVgGpHqAa";
    assert_eq!(entries(ZIP64).unwrap(), ids(&[id]));
    // Large numbers of files alone, without a second end.
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in [("a.csv", "A\nB\n"), ("b.csv", "C\n")] {
        writer.start_file(name, SimpleFileOptions::default().large_file(true)).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    assert_eq!(entries(&writer.finish().unwrap().into_inner()).unwrap(), ids(&["A", "B", "C"]));
    // A comment behind it, and every number of the first end full.
    let mut full = ZIP64.to_vec();
    let end = full.len() - END_BYTES;
    full[end + 8..end + 20].fill(0xff);
    full[end + 20..].copy_from_slice(&4_u16.to_le_bytes());
    full.extend_from_slice(b"text");
    assert_eq!(entries(&full).unwrap(), ids(&[id]));
    // A plain archive: the ordinary end record is enough.
    let plain = packed(&[("a.csv", b"A")]);
    assert_eq!(entries(&plain).unwrap(), ids(&["A"]));
}

#[test]
fn hostile_archives_of_large_numbers_are_refused_with_a_reason() {
    let (end, mark) =
        (ZIP64.len() - END_BYTES - MARK64_BYTES - END64_BYTES, ZIP64.len() - END_BYTES - MARK64_BYTES);
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = ZIP64.to_vec();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let number = |number: u64| number.to_le_bytes();
    let name = ZIP64.windows(7).rposition(|name| name == b"ids.csv").unwrap();
    for (bytes, part, why) in [
        (with(end + 32, &number(u64::MAX)), "holds more than 100 files", "more files than bytes"),
        (with(end + 32, &number(101)), "holds more than 100 files", "one file more than may be"),
        (with(end + 32, &number(2)), "is damaged or cut off", "more files than there are"),
        (with(end + 40, &number(u64::MAX)), "is damaged or cut off", "a directory larger than all"),
        (with(end + 40, &number(0)), "is damaged or cut off", "no directory"),
        (with(end + 48, &number(u64::MAX)), "is damaged or cut off", "a directory behind the file"),
        (with(end + 48, &number(1)), "damaged", "a directory elsewhere"),
        (with(end + 4, &number(u64::MAX)), "is damaged or cut off", "an end without an end"),
        (with(end, b"none"), "is damaged or cut off", "a mark of no end"),
        (with(mark, b"none"), "is damaged or cut off", "full numbers and no mark"),
        (with(mark + 8, &number(0)), "is damaged or cut off", "a mark of another place"),
        (with(mark + 8, &number(u64::MAX)), "is damaged or cut off", "a mark of no place"),
        (with(name, b"../.csv"), "leads out of it", "up"),
        ([b"#!/bin/sh\n", ZIP64].concat(), "is damaged or cut off", "bytes before it"),
        (ZIP64[..ZIP64.len() - 1].to_vec(), "is no ZIP archive, or is cut off", "cut at the end"),
        (ZIP64[1..].to_vec(), "is damaged or cut off", "cut at the begin"),
        (ENCRYPTED_FILE.to_vec(), "is encrypted", "encrypted"),
    ] {
        let found = fault(&bytes);
        assert!(found.contains(part), "{why}: {found}");
    }
}

#[test]
fn the_checked_central_directory_is_the_one_that_is_read() {
    // A stored entry that contains a central directory: a reader that searches for the first one behind a number of
    // the archive finds this.
    let inner = packed(&[("../../evil.csv", b"EVIL")]);
    let stored = archive(&[("a.csv", &[b"A\n".as_slice(), &inner].concat())], CompressionMethod::Stored);
    let found = entries(&stored).unwrap();
    assert_eq!(found[0], Entry::Id("A".to_owned()));
    let moved = [b"x".repeat(90).as_slice(), &stored].concat();
    assert_eq!(entries(&moved).unwrap(), found);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(at in 0..ZIP64.len(), byte: u8, cut in 0..ZIP64.len()) {
        for honest in [ZIP64, ENCRYPTED_FILE] {
            let mut bytes = honest.to_vec();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _ = entries(&bytes);
            bytes.truncate(cut);
            let _ = entries(&bytes);
        }
    }
}

#[test]
fn damage_inside_a_file_is_detected() {
    let text: String = (0..5_000).map(|n| format!("id-{}\n", n * 7_919 % 10_007)).collect();
    let honest = packed(&[("a.csv", text.as_bytes())]);
    assert_eq!(entries(&honest).unwrap().len(), 5_000);
    let mut broken = honest.clone();
    let middle = broken.len() / 2;
    broken[middle] ^= 0x55;
    assert!(
        fault(&broken).contains("cannot be read") || fault(&broken).contains("is damaged"),
        "{}",
        fault(&broken)
    );
}

#[test]
fn unwanted_entries_are_not_unpacked() {
    let file = || {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&packed(&[("a.csv", b"A\n"), ("b.csv", b"B\n")])).unwrap();
        file
    };
    let mut calls = 0;
    let ended = read(file(), None, |_| {
        calls += 1;
        false
    });
    assert!(matches!(ended, Err(ArchiveError::Stopped)) && calls == 1);
}

/// Two archives in one file: the end record of the first is inside the entries of the second, whose own has a number
/// that the library does not accept.
#[test]
fn an_unchecked_central_directory_is_not_read() {
    let mut both = packed(&[("a.csv", b"A"), ("b.csv", b"B")]);
    both.extend_from_slice(&packed(&[("c.csv", b"C")]));
    assert_eq!(entries(&both).unwrap(), ids(&["C"]), "bytes before an archive move all of it");
    let end = both.len() - END_BYTES;
    both[end + 4] = 1;
    assert!(fault(&both).contains("cannot be read"), "another disk: {}", fault(&both));
    // An end in the directory, as the comment of a file.
    let mut bytes = packed(&[("a.csv", b"A")]);
    let comment = [&END[..], &[0; END_BYTES - 4]].concat();
    let header = bytes.windows(4).rposition(|window| window == ENTRY).unwrap();
    let end = bytes.len() - END_BYTES;
    bytes.splice(end..end, comment);
    bytes[header + 32] = u8::try_from(END_BYTES).unwrap();
    let end = end + END_BYTES;
    bytes[end + 12..end + 16].copy_from_slice(&u32::try_from(end - header).unwrap().to_le_bytes());
    assert_eq!(fault(&bytes), "is damaged or cut off");
}
