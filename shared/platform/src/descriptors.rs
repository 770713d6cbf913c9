//! How many sockets the process may have open.

/// Descriptors reserved for files, the store and outgoing connections.
const RESERVE: usize = 512;

/// Connections when the system does not say how many descriptors there are.
const DEFAULT: usize = 10_000;

/// Connections that the process may hold: its descriptors less a reserve of 512, at least 64.
#[must_use]
pub fn descriptors() -> usize {
    connections_within(&std::fs::read_to_string("/proc/self/limits").unwrap_or_default())
}

/// The same, from the text of `/proc/self/limits`.
fn connections_within(limits: &str) -> usize {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    soft.map_or(DEFAULT, |soft| soft.saturating_sub(RESERVE).max(64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_how_many_descriptors_there_are() {
        assert!(descriptors() >= 64);
        for (limits, expected) in [
            ("Max open files            20000                20000                files     \n", 19_488),
            ("Max cpu time  unlimited  unlimited  seconds\nMax open files  1024  524288  files\n", 512),
            ("Max open files  256  256  files\n", 64),
            ("Max open files  unlimited  unlimited  files\n", DEFAULT),
            ("", DEFAULT),
        ] {
            assert_eq!(connections_within(limits), expected, "{limits}");
        }
    }
}
