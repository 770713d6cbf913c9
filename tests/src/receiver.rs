//! A receiver of webhooks: one path is answered at once and counted, the other one late.

use std::{
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};

/// How many came on the quick path, and when the last did.
#[derive(Debug, Default)]
struct Came {
    last: Mutex<(u64, Option<Instant>)>,
    more: Condvar,
}

/// The receiver, on a runtime of its own.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    came: Arc<Came>,
    _runtime: Runtime,
}

impl Receiver {
    /// Listens; an answer on the slow path takes so long.
    ///
    /// # Errors
    /// There is no port, or no thread.
    pub fn start(slow: Duration) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let (address, came) = (listener.local_addr()?, Arc::<Came>::default());
        let kept = came.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let came = kept.clone();
                // A connection that ends is opened again.
                tokio::spawn(async move { take(stream, &came, slow).await });
            }
        });
        Ok(Self { address, came, _runtime: runtime })
    }

    /// The URL that is answered at once.
    #[must_use]
    pub fn quick(&self) -> String {
        format!("http://{}/quick", self.address)
    }

    /// The URL that is answered late.
    #[must_use]
    pub fn slow(&self) -> String {
        format!("http://{}/slow", self.address)
    }

    /// Waits until so many came on the quick path; gives the time of the last, `None` when they did not come in time.
    #[must_use]
    pub fn wait(&self, count: u64, most: Duration) -> Option<Instant> {
        let last = self.came.last.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.came.more.wait_timeout_while(last, most, |(came, _)| *came < count);
        let (last, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        (!timeout.timed_out()).then(|| last.1.unwrap_or_else(Instant::now))
    }
}

/// Answers requests of one connection.
async fn take(stream: TcpStream, came: &Came, slow: Duration) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let (mut is_quick, mut length, mut is_first) = (false, 0, true);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if std::mem::take(&mut is_first) {
                is_quick = line.contains(" /quick ");
            } else if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        stream.read_exact(&mut vec![0; length]).await?;
        if is_quick {
            let mut last = came.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = (last.0 + 1, Some(Instant::now()));
            drop(last);
            came.more.notify_all();
        } else {
            tokio::time::sleep(slow).await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
        stream.flush().await?;
    }
}
