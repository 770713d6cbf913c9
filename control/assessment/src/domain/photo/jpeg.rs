//! JPEG (ITU T.81): its tables, its frame and its scans. Of the segments of applications two are kept in a form of their own: how the
//! picture is turned, and how Adobe's programs have coded its colours.

use super::Picture;

const MARK: u8 = 0xFF;
const BEGIN: u8 = 0xD8;
const END: u8 = 0xD9;
const EXIF: &[u8] = b"Exif\0\0";
/// The tag of Exif that says how a picture is turned.
const ORIENTATION: u16 = 0x0112;
/// Most scans: programs write some ten. A reader works through all pixels for each, so thousands of small ones would stop it.
const MAX_SCANS: u32 = 100;

/// The picture of a JPEG; `None` for one that is damaged or that browsers do not show.
pub(super) fn picture(sent: &[u8]) -> Option<Picture> {
    let mut rest = sent.strip_prefix(&[MARK, BEGIN])?;
    let mut bytes = Vec::with_capacity(sent.len());
    bytes.extend([MARK, BEGIN]);
    let (mut size, mut scans, mut is_turned) = (None, 0, false);
    loop {
        let (marker, after) = next_marker(rest)?;
        if marker == END {
            break;
        }
        let (segment, after) = split_segment(after)?;
        rest = after;
        match marker {
            // Baseline, extended and progressive frames.
            0xC0..=0xC2 if size.is_none() => {
                size = Some(size_of(segment)?);
                keep(&mut bytes, marker, segment);
            }
            // Tables.
            0xC4 | 0xDB | 0xDD => keep(&mut bytes, marker, segment),
            // A scan, behind which its data follows.
            0xDA if scans < MAX_SCANS => {
                size?;
                keep(&mut bytes, marker, segment);
                let (data, after) = rest.split_at_checked(end_of_data(rest)?)?;
                rest = after;
                bytes.extend_from_slice(data);
                scans += 1;
            }
            // A second frame; lossless, hierarchical and arithmetic ones; marks that have no segment; and too many scans.
            0xC0..=0xC3 | 0xC5..=0xCB | 0xCD..=0xD8 | 0xDA | 0x00..=0x01 => return None,
            0xE1 if !is_turned => {
                if let Some(turned) = orientation(segment) {
                    keep(&mut bytes, marker, &exif(turned));
                    is_turned = true;
                }
            }
            0xEE if segment.len() == 12 && segment.starts_with(b"Adobe") => {
                keep(&mut bytes, marker, segment);
            }
            // Segments of applications, comments, and what else makes no picture.
            _ => {}
        }
    }
    bytes.extend([MARK, END]);
    let (width, height) = size.filter(|_| scans > 0)?;
    Some(Picture { bytes, width, height })
}

/// The next marker, which any number of `FF` may precede, and what follows it.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let mut rest = bytes.strip_prefix(&[MARK])?;
    while let Some(fewer) = rest.strip_prefix(&[MARK]) {
        rest = fewer;
    }
    rest.split_first().map(|(marker, rest)| (*marker, rest))
}

/// The segment at the start, whose length counts itself, and what follows it.
fn split_segment(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)).checked_sub(2)?)
}

fn keep(bytes: &mut Vec<u8>, marker: u8, segment: &[u8]) {
    // It came with a length of two bytes, or is one of ours.
    let length = u16::try_from(segment.len() + 2).unwrap_or(u16::MAX);
    bytes.extend([MARK, marker]);
    bytes.extend(length.to_be_bytes());
    bytes.extend_from_slice(segment);
}

fn size_of(frame: &[u8]) -> Option<(u32, u32)> {
    let [_, height, below_height, width, below_width, _] = *frame.first_chunk::<6>()?;
    let side = |high: u8, low: u8| u32::from(u16::from_be_bytes([high, low]));
    Some((side(width, below_width), side(height, below_height)))
}

/// Where the data of a scan ends: at a mark that is neither a stuffed byte nor a restart.
fn end_of_data(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| match pair {
        [MARK, next] => !matches!(*next, 0x00 | 0xD0..=0xD7 | 0xFF),
        _ => false,
    })
}

/// How the picture is turned, 2 to 8; `None` if it is not.
fn orientation(segment: &[u8]) -> Option<u8> {
    let tiff = segment.strip_prefix(EXIF)?;
    let is_big_endian = match tiff.first_chunk::<4>()? {
        b"MM\0*" => true,
        b"II*\0" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk::<2>()?;
        Some(if is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let at = *tiff.get(4..)?.first_chunk::<4>()?;
    let at = if is_big_endian { u32::from_be_bytes(at) } else { u32::from_le_bytes(at) };
    let directory = usize::try_from(at).ok()?;
    let entries = (0..usize::from(short(directory)?)).map(|n| directory.saturating_add(2 + 12 * n));
    let mut found = entries.filter(|entry| short(*entry) == Some(ORIENTATION));
    let value = short(found.next()?.saturating_add(8))?;
    u8::try_from(value).ok().filter(|turned| (2..=8).contains(turned))
}

/// An Exif segment that says how the picture is turned, and nothing else.
fn exif(turned: u8) -> Vec<u8> {
    let mut segment = EXIF.to_vec();
    // The directory begins at byte 8 and has one entry, a short number; no other directory follows.
    segment.extend_from_slice(b"MM\0*\0\0\0\x08\0\x01");
    segment.extend(ORIENTATION.to_be_bytes());
    segment.extend([0, 3, 0, 0, 0, 1, 0, turned, 0, 0, 0, 0, 0, 0]);
    segment
}
