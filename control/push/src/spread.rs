//! Load balancing of edges: how many a replica sends away so that each replica has its share.

/// Most edges that leave per step of one second: 5,000 are spread within minutes, and no replica is flooded by those
/// that arrive.
const STEP: usize = 20;

/// How many of the `here` edges should leave now, if the other live replicas hold `others`; in addition, `leaving`
/// are on their way to one of those.
///
/// They reconnect to any other replica, not to the emptiest. So no edge leaves a replica that has at most its share
/// rounded up, and a large surplus leaves in parts.
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
    fn the_surplus_leaves_in_small_steps() {
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
    fn spreading_converges() {
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
