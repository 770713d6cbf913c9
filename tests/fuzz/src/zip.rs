//! Archives that jobs read: any bytes are entries or a fault, within the bounds of memory.
#![no_main]

use std::io::Write;

#[allow(dead_code)]
#[path = "../../../control"]
mod domain {
    #[path = "jobs/src/domain/job_lines.rs"]
    pub(crate) mod job_lines;
    #[path = "kernel/src/domain/limits.rs"]
    pub(crate) mod limits;
}
#[path = "../../../control/jobs/src/service/jobs"]
mod jobs {
    pub(crate) mod archive;

    /// The number of entries in an archive; `None` where it is refused.
    pub(crate) fn count(file: std::fs::File) -> Option<usize> {
        let mut count = 0;
        let read = archive::read(file, None, |entries| {
            count += entries.len();
            true
        });
        read.is_ok().then_some(count)
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    // A byte unpacks to at most a hundred, and an entry has a byte at least; small files may unpack to 1 MiB.
    assert!(jobs::count(file).is_none_or(|count| count <= (1 << 20).max(bytes.len() * 100)));
});
