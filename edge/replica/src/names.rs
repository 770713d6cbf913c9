//! Dictionary of texts that many links share, each stored once and referred to by a number.

use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

/// Texts in one block.
const BLOCK: usize = 256;
/// Blocks at most: 65,536 texts.
const BLOCKS: usize = 256;

type Block = Box<[OnceLock<Box<str>>]>;

/// A list that only grows; reads take no lock.
#[derive(Debug)]
pub(super) struct Names {
    blocks: Box<[OnceLock<Block>]>,
    /// Numbers by text, and the bytes of all texts.
    known: Mutex<(HashMap<Box<str>, u32>, usize)>,
    most_bytes: usize,
}

impl Names {
    /// An empty list of at most `most_bytes` of texts.
    pub(super) fn new(most_bytes: usize) -> Self {
        let blocks = (0..BLOCKS).map(|_| OnceLock::new()).collect();
        Self { blocks, known: Mutex::default(), most_bytes }
    }

    /// The text of a number.
    pub(super) fn text(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        self.blocks.get(number / BLOCK)?.get()?.get(number % BLOCK)?.get().map(|text| &**text)
    }

    /// The number of a text, which is added if the dictionary has room.
    pub(super) fn number(&self, text: &str) -> Option<u32> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.0.get(text) {
            return Some(*number);
        }
        let next = known.0.len();
        if known.1 + text.len() > self.most_bytes {
            return None;
        }
        let block = self.blocks.get(next / BLOCK)?;
        let block = block.get_or_init(|| (0..BLOCK).map(|_| OnceLock::new()).collect());
        block.get(next % BLOCK)?.set(text.into()).ok()?;
        // Below 65,536.
        let number = next as u32;
        known.0.insert(text.into(), number);
        known.1 += text.len();
        Some(number)
    }

    /// Every text, in the order of the numbers.
    pub(super) fn all(&self) -> Vec<&str> {
        (0..).map_while(|number| self.text(number)).collect()
    }

    /// Bytes that the list takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Each text twice, with its pointers and the map's own.
        2 * known.1 + known.0.len() * 64 + BLOCKS * 24
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_numbers_until_the_dictionary_is_full() {
        let names = Names::new(3_000);
        let numbers: Vec<_> = (0..1_000).map(|n| names.number(&format!("{n:03}"))).collect();
        assert!(numbers.iter().enumerate().all(|(n, number)| *number == Some(n as u32)));
        assert_eq!((names.number("more"), names.number("007")), (None, Some(7)));
        assert_eq!((names.text(999), names.text(1_000), names.all().len()), (Some("999"), None, 1_000));
    }

    #[test]
    fn the_dictionary_holds_at_most_65536_texts() {
        let names = Names::new(usize::MAX);
        let taken = (0..70_000).filter(|n: &u32| names.number(&n.to_string()).is_some()).count();
        assert_eq!((taken, names.text(65_535), names.text(65_536)), (65_536, Some("65535"), None));
    }
}
