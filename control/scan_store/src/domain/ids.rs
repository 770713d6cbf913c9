//! Ids in as few bytes as hold them: numbers to the base of 50, with the order of the texts.

use shared::{
    id::{ALPHABET, ActionId, ThngId},
    time::UnixMillis,
};

/// Characters of the time, with which an id begins.
const TIME_CHARS: usize = 8;

/// Bytes of the time: 50^8 is below 2^46.
const TIME_BYTES: usize = 6;

/// Bytes of the rest: 50^16 is below 2^91.
const KEY_BYTES: usize = 12;

/// Time and key of an action's id.
#[must_use]
pub fn split(id: &ActionId) -> (UnixMillis, [u8; KEY_BYTES]) {
    let (time, key) = numbers(id.as_str());
    (UnixMillis(i64::try_from(time).unwrap_or(i64::MAX)), key_bytes(key))
}

/// The id of an action that [`split`] took apart.
#[must_use]
pub fn join(at: UnixMillis, key: &[u8]) -> Option<ActionId> {
    Some(ActionId::new(at.0, wide(key)?))
}

/// A Thng's id in 18 bytes.
#[must_use]
pub fn pack(id: &ThngId) -> Vec<u8> {
    let (time, key) = numbers(id.as_str());
    let mut bytes = time.to_be_bytes()[16 - TIME_BYTES..].to_vec();
    bytes.extend_from_slice(&key_bytes(key));
    bytes
}

/// The id that [`pack`] wrote.
#[must_use]
pub fn unpack(bytes: &[u8]) -> Option<ThngId> {
    let (time, key) = bytes.split_at_checked(TIME_BYTES)?;
    let time = time.iter().fold(0_i64, |number, byte| number << 8 | i64::from(*byte));
    Some(ThngId::new(time, wide(key)?))
}

/// The numbers of both parts of an id.
fn numbers(text: &str) -> (u128, u128) {
    let digit = |letter: &u8| ALPHABET.binary_search(letter).unwrap_or_default() as u128;
    let number = |part: &[u8]| part.iter().fold(0_u128, |number, letter| number * 50 + digit(letter));
    let (time, key) = text.as_bytes().split_at(TIME_CHARS.min(text.len()));
    (number(time), number(key))
}

fn key_bytes(key: u128) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    bytes.copy_from_slice(&key.to_be_bytes()[16 - KEY_BYTES..]);
    bytes
}

fn wide(key: &[u8]) -> Option<[u8; 16]> {
    let key: [u8; KEY_BYTES] = key.try_into().ok()?;
    let mut bytes = [0; 16];
    bytes[16 - KEY_BYTES..].copy_from_slice(&key);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_id_comes_back(text in "[0-9A-HKMNP-UW-Ya-hkmnp-twxy]{24}", other in "[0-9A-HKMNP-UW-Ya-hkmnp-twxy]{24}") {
            prop_assume!(shared::id::is_valid(&text) && shared::id::is_valid(&other));
            let id: ActionId = text.parse().unwrap();
            let (at, key) = split(&id);
            prop_assert_eq!(join(at, &key), Some(id));
            let (one, two): (ThngId, ThngId) = (text.parse().unwrap(), other.parse().unwrap());
            prop_assert_eq!(unpack(&pack(&one)), Some(one));
            prop_assert_eq!(pack(&one).cmp(&pack(&two)), text.cmp(&other));
        }

        #[test]
        fn other_bytes_are_no_id(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(unpack(&bytes).is_some(), bytes.len() == 18);
            prop_assert_eq!(join(UnixMillis(0), &bytes).is_some(), bytes.len() == 12);
        }
    }
}
