//! A receiver of webhooks: one path is answered at once and noted, the other one late.

use std::{
    collections::{HashMap, hash_map::Entry},
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

/// When each event first came on the quick path, by its `webhook-id`, and when the newest of them did.
#[derive(Debug, Default)]
struct Came {
    events: Mutex<(HashMap<String, Instant>, Option<Instant>)>,
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

    /// Waits until so many different events came on the quick path; gives when the newest did, `None` when they did not come in
    /// time. It blocks the thread.
    #[must_use]
    pub fn wait(&self, count: usize, most: Duration) -> Option<Instant> {
        let events = self.came.events.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.came.more.wait_timeout_while(events, most, |(by_id, _)| by_id.len() < count);
        let (events, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        (!timeout.timed_out()).then(|| events.1.unwrap_or_else(Instant::now))
    }

    /// When each event first came on the quick path, by its id.
    #[must_use]
    pub fn came(&self) -> HashMap<String, Instant> {
        self.came.events.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

/// Answers requests of one connection.
async fn take(stream: TcpStream, came: &Came, slow: Duration) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let (mut id, mut length, mut is_quick, mut is_first) = (String::new(), 0, false, true);
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
            } else if let Some((name, value)) = line.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "webhook-id" => value.trim().clone_into(&mut id),
                    "content-length" => length = value.trim().parse()?,
                    _ => {}
                }
            }
        }
        stream.read_exact(&mut vec![0; length]).await?;
        if is_quick {
            let now = Instant::now();
            let mut events = came.events.lock().unwrap_or_else(PoisonError::into_inner);
            let (by_id, newest) = &mut *events;
            if let Entry::Vacant(event) = by_id.entry(id) {
                event.insert(now);
                *newest = Some(now);
            }
            drop(events);
            came.more.notify_all();
        } else {
            tokio::time::sleep(slow).await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
        stream.flush().await?;
    }
}
