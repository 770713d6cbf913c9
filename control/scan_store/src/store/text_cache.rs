//! What a process remembers of the texts of one day.

use std::{collections::HashMap, mem};

use crate::domain::columns::Kind;

/// A text by its account, its kind and its hash.
pub(super) type Hashed = (i32, i16, [u8; 16]);

/// Texts of a generation, some 60 bytes each. There are two: what is in use survives when the older one goes.
const GENERATION: usize = 100_000;

/// Most texts of one kind that an account adds in a month. They are the client's to choose: each request could bring
/// another one, with more bytes than the rest of its scan.
pub(super) const MOST_OF_KIND: usize = 50_000;

/// Numbers of texts that are committed, and marked as used on the day, so that retention keeps them.
#[derive(Debug, Default)]
pub(super) struct TextCache {
    day: i32,
    young: HashMap<Hashed, i32>,
    old: HashMap<Hashed, i32>,
    /// How many texts of a kind an account has in the month, as far as this process knows.
    counts: HashMap<(i32, Kind), usize>,
}

impl TextCache {
    pub(super) fn find(&mut self, day: i32, text: &Hashed) -> Option<i32> {
        if day != self.day {
            return None;
        }
        if let Some(id) = self.young.get(text) {
            return Some(*id);
        }
        let id = self.old.remove(text)?;
        self.add(day, [(*text, id)]);
        Some(id)
    }

    pub(super) fn add(&mut self, day: i32, texts: impl IntoIterator<Item = (Hashed, i32)>) {
        if day < self.day {
            return;
        }
        if day > self.day {
            *self = Self { day, ..Self::default() };
        }
        for (text, id) in texts {
            if self.young.len() >= GENERATION {
                self.old = mem::take(&mut self.young);
            }
            self.young.insert(text, id);
        }
    }

    /// How many texts of a kind an account has; `None` when it is to be counted.
    pub(super) fn count(&self, day: i32, of: (i32, Kind)) -> Option<usize> {
        self.counts.get(&of).copied().filter(|_| day == self.day)
    }

    pub(super) fn set_count(&mut self, day: i32, of: (i32, Kind), count: usize) {
        self.add(day, []);
        if day == self.day {
            self.counts.insert(of, count);
        }
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Whether the client chooses the texts of a kind.
pub(super) fn is_of_client(kind: Kind) -> bool {
    match kind {
        Kind::Agent | Kind::Referer | Kind::Language => true,
        Kind::Shape | Kind::Place | Kind::Rule => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: u32) -> Hashed {
        let mut hash = [0; 16];
        hash[..4].copy_from_slice(&number.to_be_bytes());
        (1, 1, hash)
    }

    #[test]
    fn what_is_in_use_stays() {
        let mut cache = TextCache::default();
        cache.add(5, [(text(0), 7)]);
        for number in 1..=5 * u32::try_from(GENERATION).unwrap() / 2 {
            cache.add(5, [(text(number), 1)]);
            if number % 50_000 == 0 {
                assert_eq!(cache.find(5, &text(0)), Some(7), "{number}");
            }
        }
        assert_eq!(cache.find(5, &text(1)), None);
        assert!(cache.young.len() + cache.old.len() <= 2 * GENERATION);
    }

    #[test]
    fn a_day_knows_nothing_of_another_one() {
        let mut cache = TextCache::default();
        cache.add(5, [(text(0), 7)]);
        cache.set_count(5, (1, Kind::Agent), 3);
        assert_eq!((cache.find(6, &text(0)), cache.count(6, (1, Kind::Agent))), (None, None));
        cache.add(4, [(text(0), 8)]);
        assert_eq!((cache.find(4, &text(0)), cache.find(5, &text(0))), (None, Some(7)));
        cache.add(6, []);
        assert_eq!((cache.find(5, &text(0)), cache.count(6, (1, Kind::Agent))), (None, None));
    }
}
