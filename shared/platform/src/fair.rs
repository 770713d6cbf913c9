//! Fair shares of a pool: the more of it is taken, the less each owner may have.

/// Whether an owner that has `count` of the places of a pool may have another one, where `free` of `total` are free, and one
/// owner alone may have at most `most`.
///
/// An owner gets another place while it has less than a multiple of what is free. So owners that take all that they get
/// leave a part of the pool, however many they are, and one that comes late finds a place. The multiple is the smallest that
/// lets one owner alone have `most`.
#[must_use]
pub const fn admits(count: usize, most: usize, total: usize, free: usize) -> bool {
    if count >= most {
        return false;
    }
    if count == 0 || most >= total {
        return true;
    }
    if free <= 1 {
        // The last place is for one that has none.
        return false;
    }
    let multiple = most.div_ceil(total - most);
    count < free.saturating_mul(multiple)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What greedy owners have once none of them gets more, and what is free then.
    fn fill(owners: usize, most: usize, total: usize) -> (Vec<usize>, usize) {
        let (mut counts, mut free) = (vec![0; owners], total);
        loop {
            let before = free;
            for count in &mut counts {
                if free > 0 && admits(*count, most, total, free) {
                    (*count, free) = (*count + 1, free - 1);
                }
            }
            if free == before {
                return (counts, free);
            }
        }
    }

    #[test]
    fn one_owner_has_its_bound_and_many_leave_room() {
        for (most, total) in [
            (16, 32),
            (768, 1_024),
            (700, 1_000),
            (700, 1_024),
            (48, 64),
            (50, 1_000),
            (32, 256),
            (8, 16),
            (2, 4),
            (6, 8),
        ] {
            assert_eq!(fill(1, most, total).0, [most], "{most} of {total}");
            for owners in [2, 3, 10] {
                let (counts, free) = fill(owners, most, total);
                assert!(free > 0 || owners >= total, "{owners} owners of {most} of {total}: {counts:?}");
                let (least, greatest) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                assert!(greatest - least <= greatest / 2 + 1, "{counts:?}");
            }
        }
        assert_eq!(fill(1, 4, 4), (vec![4], 0), "a pool without a bound for one");
        assert!(!admits(0, 0, 4, 4) && admits(0, 1, 1, 0));
    }
}
