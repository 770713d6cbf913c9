//! PNG: the chunks that make its picture.

use super::Picture;

/// Its first bytes.
pub(super) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Bytes of a chunk beside its data: length, type and checksum.
const AROUND: usize = 12;

/// The picture of a PNG; `None` for one that is damaged. Of a moving one it is the first.
pub(super) fn picture(sent: &[u8]) -> Option<Picture> {
    let mut rest = sent.strip_prefix(SIGNATURE)?;
    let mut bytes = Vec::with_capacity(sent.len());
    bytes.extend_from_slice(SIGNATURE);
    let (mut size, mut has_data) = (None, false);
    loop {
        let length = usize::try_from(u32::from_be_bytes(*rest.first_chunk::<4>()?)).ok()?;
        let (chunk, after) = rest.split_at_checked(length.checked_add(AROUND)?)?;
        rest = after;
        let (kind, data) = chunk.get(4..)?.split_first_chunk::<4>()?;
        match kind {
            b"IHDR" if size.is_none() => size = Some(size_of(data)?),
            // The header comes first, and once.
            b"IHDR" => return None,
            _ if size.is_none() => return None,
            b"PLTE" | b"tRNS" | b"gAMA" | b"cHRM" | b"sRGB" | b"IEND" => {}
            b"IDAT" => has_data = true,
            // What a reader must know, and nobody does.
            [first, ..] if first.is_ascii_uppercase() => return None,
            _ => continue,
        }
        bytes.extend_from_slice(chunk);
        if kind == b"IEND" {
            break;
        }
    }
    let (width, height) = size.filter(|_| has_data)?;
    Some(Picture { bytes, width, height })
}

fn size_of(header: &[u8]) -> Option<(u32, u32)> {
    let (width, rest) = header.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*rest.first_chunk::<4>()?)))
}
