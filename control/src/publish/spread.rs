//! How many edges a replica sends to others, so that each holds its share.

/// Most edges that leave at once, a step being a second: 5,000 are spread within minutes, and no replica is
/// overrun by those that come.
const STEP: usize = 20;

/// How many of `here` edges shall leave now, where the other replicas that run hold `others`; beside them,
/// `leaving` are on their way to one of those.
///
/// Those that leave go to some other replica, not to the emptiest: so nobody leaves a replica that has no
/// more than its share rounded up, and what is far above it goes in parts.
pub(super) fn surplus(here: usize, leaving: usize, others: &[usize]) -> usize {
    let all = here + leaving + others.iter().sum::<usize>();
    let share = all.div_ceil(others.len() + 1);
    let surplus = here.saturating_sub(share);
    surplus.div_ceil(8).min(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_share_leaves_slowly() {
        for (here, leaving, others, expected, why) in [
            (7, 0, &[][..], 0, "there is nobody else"),
            (0, 0, &[5], 0, "it has less than its share"),
            (3, 0, &[3], 0, "even"),
            (4, 0, &[3], 0, "an odd one stays where it is"),
            (4, 0, &[2], 1, "one too many"),
            (3, 0, &[0, 0], 1, "three replicas, three edges"),
            (1, 0, &[0, 0], 0, "one edge stays where it is"),
            (100, 0, &[0], 7, "an eighth of what is too much"),
            (4, 2, &[0], 1, "two are on their way, and a third is one too many"),
            (3, 3, &[0], 0, "enough are on their way"),
            (10_000, 0, &[0], 20, "never more than a step"),
        ] {
            assert_eq!(surplus(here, leaving, others), expected, "{why}");
        }
    }

    #[test]
    fn it_settles() {
        // Edges go to the next replica, as those of a fleet do that have one list of them.
        let mut held = [997, 0, 0, 0, 3];
        for _ in 0..400 {
            for at in 0..held.len() {
                let others: Vec<usize> =
                    (0..held.len()).filter(|other| *other != at).map(|other| held[other]).collect();
                let moved = surplus(held[at], 0, &others);
                held[at] -= moved;
                held[(at + 1) % held.len()] += moved;
            }
        }
        assert_eq!(held, [200; 5]);
    }
}
