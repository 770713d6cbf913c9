//! How far a demo is: a bar on a terminal, plain lines elsewhere.

use std::{
    cell::Cell,
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};

use crate::tools::{
    client::RequestError,
    shown::{self, bar, end},
};

/// Time between two plain lines.
const PERIOD: Duration = Duration::from_secs(5);

/// Shows progress on stderr, and runs requests.
pub(super) struct Shown {
    parallel: usize,
    said: Cell<Instant>,
}

impl Shown {
    /// For so many requests at once.
    pub(super) fn new(parallel: u8) -> Self {
        Self { parallel: usize::from(parallel), said: Cell::new(Instant::now()) }
    }

    /// Runs requests, some at once, until all are done or one fails; each gives how many of `all` it did.
    pub(super) async fn run<F: Future<Output = Result<usize, RequestError>>>(
        &self,
        what: &str,
        all: usize,
        requests: impl IntoIterator<Item = F>,
    ) -> Result<(), RequestError> {
        let template = "{bar:30} {pos}/{len} {msg} {eta} left";
        let bar = Some(all as u64).filter(|all| *all > 0).and_then(|all| bar(Some(all), template));
        if let Some(bar) = &bar {
            bar.set_message(what.to_owned());
        }
        let mut done = 0;
        let mut answers = pin!(stream::iter(requests).buffer_unordered(self.parallel));
        while let Some(answer) = answers.next().await {
            done += answer?;
            if let Some(bar) = &bar {
                bar.set_position(done as u64);
            } else if self.said.get().elapsed() >= PERIOD {
                self.said.set(Instant::now());
                note(&format!("{what}: {done} of {all}"));
            }
        }
        end(bar.as_ref());
        Ok(())
    }
}

/// Says something about the work.
pub(super) fn note(text: &str) {
    shown::note("demo", text);
}
