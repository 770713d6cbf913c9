//! Reads MQTT packets from a byte stream, with size limits.

use bytes::{Buf, Bytes, BytesMut};
use mqtt5::{
    FixedHeader, MqttError, Packet, PacketType,
    packet::{MqttPacket, publish::PublishPacket},
};

use crate::domain::{limits::MAX_BODY_BYTES, topic::MAX_TOPIC};

/// Largest first packet: a client id, a key, and a will of some size.
pub(super) const MAX_CONNECT: usize = 64 << 10;

/// Largest packet: the body of a request, its topic, and what surrounds them.
pub(super) const MAX_PACKET: usize = MAX_BODY_BYTES + MAX_TOPIC + 1_024;

/// Bytes of a fixed header.
const MAX_HEADER: usize = 5;

/// Why a stream is not MQTT that we read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// A packet is too large.
    #[error("a packet is too large")]
    TooLarge,
    /// A packet is malformed.
    #[error("{0}")]
    Malformed(#[from] MqttError),
}

/// Takes the next packet out of a buffer; `None` until it is complete.
///
/// `version` is that of the CONNECT, and 5 before it.
pub(super) fn take(buffer: &mut BytesMut, max: usize, version: u8) -> Result<Option<Packet>, Broken> {
    let Some((body, header)) = length(buffer)? else { return Ok(None) };
    if header + body > max {
        return Err(Broken::TooLarge);
    }
    if buffer.len() < header + body {
        return Ok(None);
    }
    let mut packet: Bytes = buffer.split_to(header + body).freeze();
    let fixed = FixedHeader::decode(&mut packet)?;
    // The codec reads two bytes of each of these without checking that they exist.
    let kind = fixed.packet_type;
    if kind == PacketType::PingReq && packet.has_remaining() {
        return Err(MqttError::MalformedPacket("PINGREQ with a body".to_owned()).into());
    }
    let decoded = Packet::decode_from_body_with_version(kind, &fixed, &mut packet, version)?;
    if packet.has_remaining() {
        return Err(MqttError::MalformedPacket("bytes behind the end".to_owned()).into());
    }
    Ok(Some(decoded))
}

/// The lengths of the body and of the fixed header of the packet that a buffer begins with.
fn length(buffer: &BytesMut) -> Result<Option<(usize, usize)>, Broken> {
    let mut body = 0_usize;
    for (at, byte) in buffer.iter().skip(1).take(MAX_HEADER - 1).enumerate() {
        body |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((body, at + 2)));
        }
    }
    if buffer.len() >= MAX_HEADER {
        return Err(MqttError::MalformedPacket("the length has more than four bytes".to_owned()).into());
    }
    Ok(None)
}

/// A packet as it goes out.
pub(super) fn encode(packet: &impl MqttPacket) -> Result<Bytes, Broken> {
    let mut bytes = BytesMut::new();
    packet.encode(&mut bytes)?;
    Ok(bytes.freeze())
}

/// A message as it goes out, without a copy in between.
pub(super) fn encode_message(packet: &PublishPacket) -> Result<Bytes, Broken> {
    let size = packet.body_encoded_size();
    let length = u32::try_from(size).map_err(|_| Broken::TooLarge)?;
    let mut bytes = BytesMut::with_capacity(MAX_HEADER + size);
    FixedHeader::new(PacketType::Publish, packet.flags(), length).encode(&mut bytes)?;
    packet.encode_body_direct(&mut bytes)?;
    Ok(bytes.freeze())
}

/// The answer to a PINGREQ.
pub(super) const fn pong() -> Bytes {
    Bytes::from_static(&[0xd0, 0])
}

#[cfg(test)]
mod tests {
    use mqtt5::QoS;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packets_are_reassembled_from_any_chunks() {
        let message = PublishPacket::new("/actions/scans", &b"{}"[..], QoS::AtLeastOnce).with_packet_id(7);
        let bytes = encode_message(&message).unwrap();
        assert_eq!(bytes, encode(&message).unwrap());
        let mut buffer = BytesMut::new();
        for byte in bytes.iter().take(bytes.len() - 1) {
            buffer.extend_from_slice(&[*byte]);
            assert!(take(&mut buffer, MAX_PACKET, 5).unwrap().is_none());
        }
        buffer.extend_from_slice(&bytes[bytes.len() - 1..]);
        buffer.extend_from_slice(&[0xc0, 0]);
        let Ok(Some(Packet::Publish(read))) = take(&mut buffer, MAX_PACKET, 5) else { panic!("no message") };
        assert_eq!((read.topic_name.as_str(), read.packet_id), ("/actions/scans", Some(7)));
        assert!(matches!(take(&mut buffer, MAX_PACKET, 5), Ok(Some(Packet::PingReq))));
        assert!(buffer.is_empty());
    }

    #[test]
    fn oversized_packets_are_refused_from_their_header() {
        let mut buffer = BytesMut::from(&[0x30, 0xff, 0xff, 0x7f][..]);
        assert!(matches!(take(&mut buffer, MAX_PACKET, 4), Err(Broken::TooLarge)));
        let mut buffer = BytesMut::from(&[0x30, 0xff, 0xff, 0xff, 0xff, 0x01][..]);
        assert!(matches!(take(&mut buffer, usize::MAX, 4), Err(Broken::Malformed(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(
            first in any::<u8>(),
            body in proptest::collection::vec(any::<u8>(), 0..120),
            version in 4..=5_u8,
        ) {
            let mut bytes = vec![first, body.len() as u8];
            bytes.extend_from_slice(&body);
            let mut buffer = BytesMut::from(&bytes[..]);
            if let Ok(Some(_)) = take(&mut buffer, MAX_PACKET, version) {
                prop_assert!(buffer.is_empty());
            }
        }
    }
}
