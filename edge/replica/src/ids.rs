//! Ids packed into three quarters of their length, or replaced by a number where many links share one.

use std::str::FromStr;

use shared::id::{ALPHABET, ID_LEN};

use super::{
    bytes::{number, put_number, take},
    names::Names,
};

/// Bytes of a packed id: 8 characters of 50 letters in 6, the other 16 in 12.
pub(super) const PACKED_ID: usize = 18;
/// Characters of the first part of an id.
const HEAD: usize = 8;

/// The letters of an id.
pub(super) type Id = [u8; ID_LEN];

/// An id of some kind from its letters.
pub(super) fn parse<T: FromStr>(id: &Id) -> Option<T> {
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// Packs an id; `None` if the text is not one.
pub(super) fn pack(id: &str) -> Option<[u8; PACKED_ID]> {
    let id = id.as_bytes();
    if id.len() != ID_LEN {
        return None;
    }
    let value = |part: &[u8]| {
        part.iter().try_fold(0_u128, |value, byte| {
            Some(value * ALPHABET.len() as u128 + ALPHABET.binary_search(byte).ok()? as u128)
        })
    };
    let (head, tail) = (value(id.get(..HEAD)?)?, value(id.get(HEAD..)?)?);
    let mut out = [0; PACKED_ID];
    out[..6].copy_from_slice(&head.to_be_bytes()[10..]);
    out[6..].copy_from_slice(&tail.to_be_bytes()[4..]);
    Some(out)
}

/// Takes a packed id.
pub(super) fn unpack(input: &mut &[u8]) -> Option<Id> {
    let packed = take(input, PACKED_ID)?;
    let (mut head, mut tail) = ([0; 16], [0; 16]);
    head[10..].copy_from_slice(packed.get(..6)?);
    tail[4..].copy_from_slice(packed.get(6..)?);
    let mut out = [0; ID_LEN];
    let write = |mut value: u128, out: &mut [u8]| {
        for slot in out.iter_mut().rev() {
            *slot = ALPHABET[(value % ALPHABET.len() as u128) as usize];
            value /= ALPHABET.len() as u128;
        }
    };
    write(u128::from_be_bytes(head), &mut out[..HEAD]);
    write(u128::from_be_bytes(tail), &mut out[HEAD..]);
    Some(out)
}

/// Writes an id by its number, or literally behind a zero if the dictionary is full.
pub(super) fn put_id(ids: &Names, out: &mut Vec<u8>, id: &str) -> Option<()> {
    match ids.number(id) {
        Some(number) => put_number(out, u64::from(number) + 1),
        None => {
            put_number(out, 0);
            out.extend(pack(id)?);
        }
    }
    Some(())
}

/// Takes an id as [`put_id`] wrote it.
pub(super) fn take_id(ids: &Names, input: &mut &[u8]) -> Option<Id> {
    match number(input)? {
        0 => unpack(input),
        number => ids.text(u32::try_from(number - 1).ok()?)?.as_bytes().try_into().ok(),
    }
}

/// Passes over an id as [`put_id`] wrote it.
pub(super) fn pass_id(input: &mut &[u8]) -> Option<()> {
    if number(input)? == 0 {
        take(input, PACKED_ID)?;
    }
    Some(())
}
