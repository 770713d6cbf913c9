//! Records of the scan spool: any bytes are records or refused, and what is read is what was framed.
#![no_main]

use shared::wire::spooled::{decode, read_all, split_frame};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = read_all(bytes);
    let mut rest = bytes;
    while let Some((payload, behind)) = split_frame(rest) {
        assert_eq!(rest.len(), 8 + payload.len() + behind.len());
        let _ = decode(payload);
        rest = behind;
    }
    // The same bytes as a record whose length and checksum are right: it is read as the record alone is.
    let mut framed = u32::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
    framed.extend(crc32c::crc32c(bytes).to_le_bytes());
    framed.extend(bytes);
    assert_eq!(split_frame(&framed), Some((bytes, &[][..])));
    assert_eq!(read_all(&framed), decode(bytes).map(|record| vec![record]));
});
