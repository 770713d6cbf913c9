//! Bounded channels between code that blocks and the runtime, as a reader and a writer.

use std::io::{self, Read, Write};

use bytes::Bytes;
use tokio::sync::mpsc;

/// Bytes that are sent at once.
const PIECE: usize = 256 * 1024;

/// Pieces that wait.
pub(super) const WAITING: usize = 4;

/// Reads what is sent, on a thread that may block.
#[derive(Debug)]
pub(super) struct ChannelReader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    rest: Bytes,
}

impl ChannelReader {
    pub(super) const fn new(pieces: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Self { pieces, rest: Bytes::new() }
    }
}

impl Read for ChannelReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.rest = piece?,
                None => return Ok(0),
            }
        }
        let count = self.rest.len().min(out.len());
        let (piece, out) = (self.rest.split_to(count), &mut out[..count]);
        out.copy_from_slice(&piece);
        Ok(count)
    }
}

/// Sends what is written, from a thread that may block; what is left when it is dropped.
#[derive(Debug)]
pub(super) struct ChannelWriter {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    waiting: Vec<u8>,
}

impl ChannelWriter {
    pub(super) const fn new(pieces: mpsc::Sender<io::Result<Bytes>>) -> Self {
        Self { pieces, waiting: Vec::new() }
    }

    fn send(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.waiting);
        self.pieces.blocking_send(Ok(piece.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for ChannelWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= PIECE {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

impl Drop for ChannelWriter {
    fn drop(&mut self) {
        // Whoever reads has gone, and says why.
        let _ = self.send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_as_they_were_written() {
        let (send, receive) = mpsc::channel(WAITING);
        let sent: Vec<u8> = (0..PIECE * 3 + 7).map(|at| (at % 251) as u8).collect();
        let expected = sent.clone();
        let writing = std::thread::spawn(move || {
            let mut writer = ChannelWriter::new(send);
            for piece in sent.chunks(1_000) {
                writer.write_all(piece).unwrap();
            }
        });
        let mut read = Vec::new();
        ChannelReader::new(receive).read_to_end(&mut read).unwrap();
        writing.join().unwrap();
        assert!(read == expected);
    }

    #[test]
    fn an_error_arrives_and_a_reader_that_left_is_noticed() {
        let (send, receive) = mpsc::channel(WAITING);
        send.try_send(Err(io::ErrorKind::TimedOut.into())).unwrap();
        let mut reader = ChannelReader::new(receive);
        assert_eq!(reader.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(reader);
        let mut writer = ChannelWriter::new(send);
        assert_eq!(writer.write(&[1; PIECE]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
