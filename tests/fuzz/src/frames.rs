//! Bytes of the change stream: any bytes are messages or an error, and the same ones however they arrive.
#![no_main]

use shared::wire::{
    frame::{Decoder, Message},
    stream::{ToControl, ToEdge},
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Bytes as they are, and as the bodies of frames whose length and checksum are right.
    let framed = framed(bytes);
    for bytes in [bytes, &framed] {
        check::<ToControl>(bytes);
        check::<ToEdge>(bytes);
    }
});

/// Cuts the input into frames: a byte for the kind, one for the length of the body, the body.
fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [kind, length, rest @ ..] = bytes {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        let kind = kind % 12;
        out.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        out.push(kind);
        out.extend(crc32c::crc32c_append(crc32c::crc32c(&[kind]), body).to_le_bytes());
        out.extend(body);
        bytes = rest;
    }
    out
}

fn check<M: Message + std::fmt::Debug>(bytes: &[u8]) {
    let whole = decode::<M>([bytes]);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decode::<M>(single), whole);
}

/// What comes out of the bytes: messages, and the error that ended them.
fn decode<'a, M: Message + std::fmt::Debug>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut decoder = Decoder::<M>::default();
    let mut said = String::new();
    for part in parts {
        decoder.buffer.extend_from_slice(part);
        loop {
            match decoder.decode() {
                Ok(Some(message)) => said.push_str(&format!("{message:?}\n")),
                Ok(None) => break,
                Err(error) => return said + &error.to_string(),
            }
        }
    }
    said
}
