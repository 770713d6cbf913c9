//! A link that can be cut: a TCP proxy that forwards, drops or resets.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// What the link does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It passes them on.
    Pass,
    /// It takes them and passes nothing on; connections stay open, as with a cable that was pulled.
    Blackhole,
    /// It resets every connection and refuses new ones.
    Reset,
}

/// A link to one address; it ends when dropped.
pub struct Link {
    /// Where it listens, on loopback.
    pub port: u16,
    mode: watch::Sender<Mode>,
    target: watch::Sender<SocketAddr>,
    task: tokio::task::JoinHandle<()>,
}

impl Link {
    /// Opens a link that passes.
    pub async fn open(to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (mode, seen) = watch::channel(Mode::Pass);
        let (target, to) = watch::channel(to);
        let task = tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let (mut seen, to) = (seen.clone(), *to.borrow());
                tokio::spawn(async move {
                    if *seen.borrow_and_update() == Mode::Reset {
                        reset(&from);
                        return;
                    }
                    if let Ok(to) = TcpStream::connect(to).await {
                        carry(from, to, seen).await;
                    }
                });
            }
        });
        Ok(Self { port, mode, target, task })
    }

    /// Leads new connections elsewhere, as a virtual address does.
    pub fn lead_to(&self, address: SocketAddr) {
        self.target.send_replace(address);
    }

    /// Changes what it does, with open connections too.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is left of a connection is thrown away, and its peer sees the reset.
fn reset(socket: &TcpStream) {
    // A lingering of no time at all is how a socket is reset by its owner.
    let _ = socket.set_zero_linger();
}

async fn carry(from: TcpStream, to: TcpStream, seen: watch::Receiver<Mode>) {
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    let (from_read, from_write) = from.into_split();
    let (to_read, to_write) = to.into_split();
    tokio::join!(pump(from_read, to_write, seen.clone()), pump(to_read, from_write, seen));
}

/// Copies one direction until it ends; while the link is a black hole, it waits.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut seen: watch::Receiver<Mode>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let mode = *seen.borrow_and_update();
        match mode {
            Mode::Pass => {}
            Mode::Blackhole => match seen.changed().await {
                Ok(()) => continue,
                Err(_) => return,
            },
            Mode::Reset => {
                reset(from.as_ref());
                reset(to.as_ref());
                return;
            }
        }
        tokio::select! {
            biased;
            changed = seen.changed() => if changed.is_err() { return },
            read = from.read(&mut buffer) => match read {
                Ok(count @ 1..) => if to.write_all(&buffer[..count]).await.is_err() { return },
                Ok(_) => {
                    let _ = to.shutdown().await;
                    return;
                }
                Err(_) => {
                    reset(to.as_ref());
                    return;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = socket.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        address
    }

    async fn round(socket: &mut TcpStream) -> std::io::Result<[u8; 4]> {
        let mut back = [0; 4];
        socket.write_all(b"ping").await?;
        socket.read_exact(&mut back).await?;
        Ok(back)
    }

    #[tokio::test]
    async fn a_link_passes_swallows_and_resets() {
        let link = Link::open(echo().await).await.unwrap();
        let mut socket = TcpStream::connect(("127.0.0.1", link.port)).await.unwrap();
        assert_eq!(round(&mut socket).await.unwrap(), *b"ping");
        link.set(Mode::Blackhole);
        socket.write_all(b"late").await.unwrap();
        let mut back = [0; 4];
        let nothing = tokio::time::timeout(Duration::from_millis(100), socket.read_exact(&mut back)).await;
        assert!(nothing.is_err(), "a black hole answers nothing");
        link.set(Mode::Pass);
        socket.read_exact(&mut back).await.unwrap();
        assert_eq!(back, *b"late", "what was under way arrives");
        link.set(Mode::Reset);
        assert!(round(&mut socket).await.is_err(), "an open connection is reset");
        let mut fresh = TcpStream::connect(("127.0.0.1", link.port)).await.unwrap();
        assert!(round(&mut fresh).await.is_err(), "a new one too");
        link.set(Mode::Pass);
        let mut fresh = TcpStream::connect(("127.0.0.1", link.port)).await.unwrap();
        assert_eq!(round(&mut fresh).await.unwrap(), *b"ping");
    }
}
