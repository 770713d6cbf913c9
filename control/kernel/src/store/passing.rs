//! Errors of the databases that pass by themselves.

/// Tells codes of both engines that pass by themselves from those of faults.
///
/// SQLSTATE has five characters; SQLite's codes are smaller numbers, whose lowest byte is the kind.
pub(super) fn is_passing(code: &str) -> bool {
    match code.parse::<u32>() {
        Ok(number) if code.len() < 5 => {
            const BUSY: u32 = 5;
            const LOCKED: u32 = 6;
            const IO: u32 = 10;
            const FULL: u32 = 13;
            const CANNOT_OPEN: u32 = 14;
            matches!(number & 0xff, BUSY | LOCKED | IO | FULL | CANNOT_OPEN)
        }
        // Connection failures, a lack of room, memory or connections, faults of the disk; serialisation failure,
        // deadlock, lock timeout, shutdown and start; a server that is read-only after a failover, which the next
        // connection may not reach any more.
        Ok(_) | Err(_) => {
            ["08", "53", "58"].iter().any(|class| code.starts_with(class))
                || matches!(code, "25006" | "40001" | "40P01" | "55P03" | "57P01" | "57P02" | "57P03")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_told_from_faults() {
        for (code, expected, why) in [
            ("5", true, "SQLite: another process writes"),
            ("261", true, "SQLite: another process recovers the log"),
            ("517", true, "SQLite: a reader would have to write on an old snapshot"),
            ("6", true, "SQLite: a table is locked"),
            ("13", true, "SQLite: the disk is full"),
            ("778", true, "SQLite: a write to the disk failed"),
            ("14", true, "SQLite: a file cannot be opened"),
            ("2067", false, "SQLite: a unique constraint"),
            ("1", false, "SQLite: the statement is wrong"),
            ("25006", true, "Postgres: read-only, as the old server is after a failover"),
            ("40001", true, "Postgres: serialisation failure"),
            ("40P01", true, "Postgres: deadlock"),
            ("55P03", true, "Postgres: lock timeout"),
            ("57P01", true, "Postgres: it shuts down"),
            ("08006", true, "Postgres: the connection failed"),
            ("53100", true, "Postgres: the disk is full"),
            ("53200", true, "Postgres: there is no memory"),
            ("53300", true, "Postgres: too many connections"),
            ("58030", true, "Postgres: a read or write of a file failed"),
            ("42601", false, "Postgres: the statement is wrong"),
            ("22P05", false, "Postgres: a character that it cannot store"),
        ] {
            assert_eq!(is_passing(code), expected, "{code}: {why}");
        }
    }
}
