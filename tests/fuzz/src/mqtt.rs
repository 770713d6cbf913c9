//! Packets of MQTT as the broker takes them out of a stream: any bytes are packets or refused, and the same
//! ones however they arrive.
#![no_main]

#[allow(dead_code)]
#[path = "../../../control"]
mod domain {
    #[path = "kernel/src/domain/limits.rs"]
    pub(crate) mod limits;
    /// The one constant of topics that the bounds of packets need.
    pub(crate) mod topic {
        pub(crate) const MAX_TOPIC: usize = 2_048;
    }
}

#[allow(dead_code)]
#[path = "../../../control/events/src/live"]
mod live {
    use bytes::BytesMut;

    mod packets;

    /// The packets that arrive in these parts, and why the last one was refused.
    pub(crate) fn read<'a>(parts: impl IntoIterator<Item = &'a [u8]>, version: u8) -> String {
        let (mut buffer, mut read) = (BytesMut::new(), String::new());
        for part in parts {
            buffer.extend_from_slice(part);
            loop {
                let before = buffer.len();
                match packets::take(&mut buffer, packets::MAX_PACKET, version) {
                    // Its kind alone: the properties are printed in any order.
                    Ok(Some(packet)) => read.extend(format!("{packet:?}").split('(').next()),
                    Ok(None) => break,
                    Err(error) => return read + &error.to_string(),
                }
                assert!(buffer.len() < before, "a packet of no bytes");
            }
        }
        read
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for version in [4, 5] {
        assert_eq!(live::read(bytes.chunks(1), version), live::read([bytes], version));
    }
});
