//! Any path and query are a Digital Link or are refused; a link is the same after it was written and read.
#![no_main]

use digital_link::DigitalLink;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    match DigitalLink::parse(path, query) {
        Ok(link) => {
            assert!(path.starts_with(link.stem()) && link.query() == query, "{text:?}");
            let written = link.path();
            let again = DigitalLink::parse(&written, None);
            let same = again.as_ref().is_ok_and(|again| again.human_readable() == link.human_readable());
            assert!(same, "{text:?} is written as {written:?}: {again:?}");
        }
        Err(fault) => assert!(!fault.to_string().is_empty(), "{text:?}"),
    }
});
