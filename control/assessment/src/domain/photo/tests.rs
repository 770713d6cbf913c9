use proptest::prelude::*;

use super::*;

const SECRET: &[u8] = b"48.8584 N, 2.2945 E";

fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len() + 2).unwrap();
    [&[0xFF, marker][..], &length.to_be_bytes(), data].concat()
}

fn chunk_of_png(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [&length.to_be_bytes()[..], kind, data, &[1, 2, 3, 4]].concat()
}

fn chunk_of_webp(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    let padding: &[u8] = if data.len() % 2 == 1 { &[0] } else { &[] };
    [&kind[..], &length.to_le_bytes(), data, padding].concat()
}

fn riff(chunks: &[u8]) -> Vec<u8> {
    let length = u32::try_from(chunks.len() + 4).unwrap();
    [&b"RIFF"[..], &length.to_le_bytes(), b"WEBP", chunks].concat()
}

/// Exif of little endian with a position behind its two entries.
fn exif(turned: u8) -> Vec<u8> {
    let make = [0x0F_u8, 0x01, 2, 0, 19, 0, 0, 0, 38, 0, 0, 0];
    let orientation = [0x12, 0x01, 3, 0, 1, 0, 0, 0, turned, 0, 0, 0];
    [&b"Exif\0\0II*\0\x08\0\0\0\x02\0"[..], &make, &orientation, &[0; 4], SECRET].concat()
}

/// A JPEG of 2 x 3 pixels in two scans, with secrets in it or the segment that is left of them.
fn jpeg(has_secrets: bool, turned: u8) -> Vec<u8> {
    let secret = |marker| if has_secrets { segment(marker, SECRET) } else { Vec::new() };
    let clean = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0";
    let exif = match (has_secrets, turned) {
        (true, _) => segment(0xE1, &exif(turned)),
        (false, 2..=8) => segment(0xE1, &[&clean[..], &[turned, 0, 0, 0, 0, 0, 0]].concat()),
        (false, _) => Vec::new(),
    };
    let behind: &[u8] = if has_secrets { SECRET } else { &[] };
    [
        &[0xFF, 0xD8][..],
        &secret(0xE0),
        &exif,
        // XMP, profiles and pictures, IPTC, and a comment.
        &secret(0xE1),
        &secret(0xE2),
        &secret(0xED),
        &segment(0xEE, b"Adobe\0\x64\0\0\0\0\x01"),
        &secret(0xFE),
        &segment(0xDB, &[0; 65]),
        &segment(0xC2, &[8, 0, 3, 0, 2, 1, 1, 0x11, 0]),
        &segment(0xC4, &[0; 20]),
        &segment(0xDA, &[1, 1, 0, 0, 63, 0]),
        &[1, 2, 0xFF, 0, 3, 0xFF, 0xD0, 4],
        &secret(0xFE),
        &segment(0xDA, &[1, 1, 0, 0, 63, 0]),
        &[5, 6],
        &[0xFF, 0xD9],
        behind,
    ]
    .concat()
}

fn png(has_secrets: bool) -> Vec<u8> {
    let secret = |kind: &[u8; 4]| if has_secrets { chunk_of_png(kind, SECRET) } else { Vec::new() };
    let behind: &[u8] = if has_secrets { SECRET } else { &[] };
    [
        png::SIGNATURE,
        &chunk_of_png(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 0, 0, 0]),
        &secret(b"eXIf"),
        &secret(b"tEXt"),
        &secret(b"iCCP"),
        &chunk_of_png(b"IDAT", &[9; 7]),
        &secret(b"tIME"),
        &chunk_of_png(b"IEND", &[]),
        behind,
    ]
    .concat()
}

fn webp(has_secrets: bool) -> Vec<u8> {
    let secret = |kind: &[u8; 4]| if has_secrets { chunk_of_webp(kind, SECRET) } else { Vec::new() };
    let flags = if has_secrets { 0x3C } else { 0x10 };
    let chunks = [
        chunk_of_webp(b"VP8X", &[flags, 0, 0, 0, 1, 0, 0, 2, 0, 0]),
        secret(b"ICCP"),
        chunk_of_webp(b"ALPH", &[7; 3]),
        chunk_of_webp(b"VP8 ", &[0, 0, 0, 0x9D, 1, 0x2A, 2, 0, 3, 0, 9]),
        secret(b"EXIF"),
        secret(b"XMP "),
    ];
    riff(&chunks.concat())
}

#[test]
fn only_the_picture_is_copied() {
    for (sent, expected, kind) in [
        (jpeg(true, 6), jpeg(false, 6), PhotoType::Jpeg),
        (jpeg(true, 1), jpeg(false, 1), PhotoType::Jpeg),
        (png(true), png(false), PhotoType::Png),
        (webp(true), webp(false), PhotoType::WebP),
        (riff(&chunk_of_webp(b"VP8L", &[0x2F, 1, 0x80, 0, 0])), Vec::new(), PhotoType::WebP),
    ] {
        let expected = if expected.is_empty() { sent.clone() } else { expected };
        let photo = Photo { kind, bytes: expected.clone() };
        assert_eq!(Photo::read(&sent), Ok(photo.clone()));
        assert_eq!(Photo::read(&expected), Ok(photo), "it is as it was");
        assert!(!expected.windows(SECRET.len()).any(|part| part == SECRET), "{kind:?}");
        // One that ends early is none.
        for length in 12..expected.len() {
            assert_eq!(Photo::read(&expected[..length]), Err(InvalidPhoto::Form), "{kind:?} {length}");
        }
    }
}

#[test]
fn what_is_no_photo_is_refused() {
    let sized = |width: u32, height: u32| {
        let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        let chunks =
            [chunk_of_png(b"IHDR", &header), chunk_of_png(b"IDAT", &[1]), chunk_of_png(b"IEND", &[])];
        [png::SIGNATURE, &chunks.concat()].concat()
    };
    assert!(Photo::read(&sized(8_000, 8_000)).is_ok());
    let frame = |marker: u8| [&[0xFF, 0xD8][..], &segment(marker, &[8, 0, 3, 0, 2, 1, 1, 0x11, 0])].concat();
    let scans = |count: usize| {
        let scan = segment(0xDA, &[1, 1, 0, 0, 63, 0]);
        [frame(0xC2), scan.repeat(count), vec![0xFF, 0xD9]].concat()
    };
    assert!(Photo::read(&scans(100)).is_ok());
    let moving = riff(&chunk_of_webp(b"ANIM", &[0; 6]));
    for (sent, expected) in [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(), InvalidPhoto::Type),
        (b"GIF89a".to_vec(), InvalidPhoto::Type),
        (Vec::new(), InvalidPhoto::Type),
        (sized(8_000, 8_001), InvalidPhoto::Pixels),
        (sized(u32::MAX, u32::MAX), InvalidPhoto::Pixels),
        (sized(0, 1), InvalidPhoto::Form),
        ([frame(0xC0), vec![0xFF, 0xD9]].concat(), InvalidPhoto::Form),
        ([frame(0xC3), vec![0xFF, 0xD9]].concat(), InvalidPhoto::Form),
        (scans(101), InvalidPhoto::Form),
        (moving, InvalidPhoto::Form),
    ] {
        assert_eq!(Photo::read(&sent), Err(expected), "{sent:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(
        start in 0..4_usize,
        place in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut sent = vec![jpeg(true, 6), png(true), webp(true), vec![0xFF, 0xD8, 0xFF, 0xDA]].swap_remove(start);
        let at = place.index(sent.len());
        let end = (at + bytes.len()).min(sent.len());
        drop(sent.splice(at..end, bytes));
        if let Ok(photo) = Photo::read(&sent) {
            // An Exif segment may become a little longer.
            prop_assert!(photo.bytes.len() <= sent.len() + 36);
            prop_assert_eq!(Photo::read(&photo.bytes), Ok(photo.clone()));
        }
    }
}
