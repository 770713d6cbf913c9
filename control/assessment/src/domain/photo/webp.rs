//! WebP (RFC 9649): the chunks that make its picture.

use super::Picture;

/// Of the flags of the header, that the picture is transparent.
const ALPHA: u8 = 0x10;

/// The picture of a WebP; `None` for one that is damaged or that moves.
pub(super) fn picture(sent: &[u8]) -> Option<Picture> {
    let (size, rest) = sent.strip_prefix(b"RIFF")?.split_first_chunk::<4>()?;
    let whole = rest.get(..usize::try_from(u32::from_le_bytes(*size)).ok()?)?;
    let mut rest = whole.strip_prefix(b"WEBP")?;
    let mut chunks = Vec::with_capacity(sent.len());
    let (mut canvas, mut size) = (None, None);
    while !rest.is_empty() {
        let (kind, after) = rest.split_first_chunk::<4>()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (data, after) = after.split_at_checked(length)?;
        // An odd length is followed by a byte, which some programs leave out at the end.
        rest = if length % 2 == 1 { after.get(1..).unwrap_or_default() } else { after };
        match kind {
            b"VP8X" if canvas.is_none() && size.is_none() => {
                let mut header = *data.first_chunk::<10>()?;
                canvas = Some(size_of_canvas(&header)?);
                *header.first_mut()? &= ALPHA;
                keep(&mut chunks, kind, &header);
            }
            b"VP8X" | b"ANIM" | b"ANMF" => return None,
            b"ALPH" => keep(&mut chunks, kind, data),
            b"VP8 " | b"VP8L" if size.is_none() => {
                size = Some(if kind == b"VP8L" { size_of_lossless(data)? } else { size_of_lossy(data)? });
                keep(&mut chunks, kind, data);
            }
            _ => {}
        }
    }
    let (width, height) = size.filter(|size| canvas.is_none_or(|canvas| canvas == *size))?;
    let length = u32::try_from(chunks.len() + 4).ok()?;
    let bytes = [&b"RIFF"[..], &length.to_le_bytes()[..], &b"WEBP"[..], chunks.as_slice()].concat();
    Some(Picture { bytes, width, height })
}

fn keep(chunks: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    chunks.extend_from_slice(kind);
    // It came with a length of four bytes.
    chunks.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_le_bytes());
    chunks.extend_from_slice(data);
    if data.len() % 2 == 1 {
        chunks.push(0);
    }
}

fn size_of_canvas(header: &[u8]) -> Option<(u32, u32)> {
    let (_, sides) = header.split_first_chunk::<4>()?;
    let (width, rest) = sides.split_first_chunk::<3>()?;
    let side = |[low, middle, high]: [u8; 3]| u32::from_le_bytes([low, middle, high, 0]) + 1;
    Some((side(*width), side(*rest.first_chunk::<3>()?)))
}

/// Fourteen bits of each side, less one, behind a mark.
fn size_of_lossless(data: &[u8]) -> Option<(u32, u32)> {
    let bits = u32::from_le_bytes(*data.strip_prefix(&[0x2F])?.first_chunk::<4>()?);
    Some(((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1))
}

/// Fourteen bits of each side, behind three bytes of the frame and a mark.
fn size_of_lossy(data: &[u8]) -> Option<(u32, u32)> {
    let sides = data.get(3..)?.strip_prefix(&[0x9D, 0x01, 0x2A])?;
    let (width, rest) = sides.split_first_chunk::<2>()?;
    let side = |bytes: [u8; 2]| u32::from(u16::from_le_bytes(bytes) & 0x3FFF);
    Some((side(*width), side(*rest.first_chunk::<2>()?)))
}
