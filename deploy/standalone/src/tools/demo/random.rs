//! Numbers that follow from a seed, the same on every machine and in every release: SplitMix64.

/// A sequence of numbers.
pub(super) struct Random(u64);

impl Random {
    /// The sequence of a part of a demo; each part has one of its own, so that a change of one leaves the others.
    pub(super) fn of(seed: u32, part: u32) -> Self {
        let mut random = Self(u64::from(seed) << 32 | u64::from(part));
        // Neighbouring parts begin with unlike numbers.
        let start = random.draw();
        Self(start)
    }

    /// The next number.
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The next number below a bound, which is at least 1; the bounds here are far too small for a bias.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound.max(1) as u64) as usize
    }

    /// A number from 0 up to, and without, 1.
    pub(super) fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts a list into another order.
    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = self.below(at + 1);
            list.swap(at, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_follows_from_its_seed_and_part() {
        let first = |seed, part| Random::of(seed, part).draw();
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(1, 3));
        assert_ne!(first(1, 2), first(2, 2));
        let mut random = Random::of(7, 0);
        for _ in 0..1_000 {
            assert!(random.below(3) < 3);
            assert!((0.0..1.0).contains(&random.fraction()));
        }
        let mut list: Vec<u32> = (0..100).collect();
        random.shuffle(&mut list);
        let mut sorted = list.clone();
        sorted.sort_unstable();
        assert!(sorted != list && sorted == (0..100).collect::<Vec<_>>());
    }
}
