//! Files of ids that jobs read: any bytes are entries or no text, and the same ones however they arrive.
#![no_main]

#[allow(dead_code)]
#[path = "../../../control"]
mod domain {
    #[path = "jobs/src/domain/job_lines.rs"]
    pub(crate) mod job_lines;
    #[path = "kernel/src/domain/limits.rs"]
    pub(crate) mod limits;
}

use domain::job_lines::Lines;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(read(bytes.chunks(1)), read([bytes]));
});

/// The entries of a file, or why it is no text.
fn read<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let (mut lines, mut entries) = (Lines::new("ids.csv", Some("gs1:21")), Vec::new());
    for part in parts {
        if let Err(error) = lines.feed(part, &mut entries) {
            return error.to_string();
        }
    }
    match lines.finish(&mut entries) {
        Ok(()) => format!("{entries:?}"),
        Err(error) => error.to_string(),
    }
}
