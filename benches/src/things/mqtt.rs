//! As much of MQTT 3.1.1 as `things` needs: blocking, so that a thread serves a share of the connections.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Result, ensure};

/// A connection, for one topic.
pub(super) struct Mqtt {
    stream: TcpStream,
    topic: String,
}

impl Mqtt {
    pub(super) fn connect(address: SocketAddr, id: &str, key: &str, topic: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut body = vec![0, 4, b'M', b'Q', b'T', b'T', 4, 0xc2, 0, 0];
        for text in [id, "authorization", key] {
            push_text(&mut body, text)?;
        }
        let mut this = Self { stream, topic: topic.to_owned() };
        this.send(0x10, &body)?;
        let (kind, body) = this.read()?;
        ensure!(kind == 0x20 && body.get(1) == Some(&0), "CONNACK {body:?}");
        Ok(this)
    }

    pub(super) fn subscribe(&mut self) -> Result<()> {
        let mut body = vec![0, 1];
        push_text(&mut body, &self.topic)?;
        body.push(0);
        self.send(0x82, &body)?;
        let (kind, body) = self.read()?;
        ensure!(kind == 0x90 && body.get(2) == Some(&0), "SUBACK {body:?}");
        Ok(())
    }

    pub(super) fn publish(&mut self, payload: &[u8]) -> Result<()> {
        let mut body = Vec::new();
        let topic = self.topic.clone();
        push_text(&mut body, &topic)?;
        body.extend_from_slice(&[0, 1]);
        body.extend_from_slice(payload);
        self.send(0x32, &body)
    }

    pub(super) fn acknowledged(&mut self) -> Result<()> {
        let (kind, _) = self.read()?;
        ensure!(kind == 0x40, "{kind:#x} instead of PUBACK");
        Ok(())
    }

    pub(super) fn heard(&mut self) -> Result<()> {
        let (kind, body) = self.read()?;
        ensure!(kind & 0xf0 == 0x30 && body.ends_with(b"]"), "{kind:#x} instead of a message");
        Ok(())
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        let mut packet = vec![kind];
        let mut length = body.len();
        loop {
            let byte = u8::try_from(length % 128)?;
            length /= 128;
            packet.push(if length > 0 { byte | 0x80 } else { byte });
            if length == 0 {
                break;
            }
        }
        packet.extend_from_slice(body);
        Ok(self.stream.write_all(&packet)?)
    }

    fn read(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte)?;
        let (kind, mut length, mut shift) = (byte[0], 0_usize, 0);
        loop {
            self.stream.read_exact(&mut byte)?;
            length |= usize::from(byte[0] & 0x7f) << shift;
            shift += 7;
            if byte[0] & 0x80 == 0 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((kind, body))
    }
}

fn push_text(body: &mut Vec<u8>, text: &str) -> Result<()> {
    body.extend_from_slice(&u16::try_from(text.len())?.to_be_bytes());
    body.extend_from_slice(text.as_bytes());
    Ok(())
}
