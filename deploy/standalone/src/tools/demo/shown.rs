//! How far a demo is: a bar on a terminal, plain lines elsewhere.

use std::{
    cell::Cell,
    io::{self, IsTerminal as _, Write as _},
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use indicatif::{ProgressBar, ProgressStyle};

use crate::tools::client::RequestError;

/// Time between two plain lines.
const PERIOD: Duration = Duration::from_secs(5);

/// Shows progress on stderr, and runs requests.
pub(super) struct Shown {
    is_terminal: bool,
    parallel: usize,
    said: Cell<Instant>,
}

impl Shown {
    /// For so many requests at once.
    pub(super) fn new(parallel: u8) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { is_terminal, parallel: usize::from(parallel), said: Cell::new(Instant::now()) }
    }

    /// Runs requests, some at once, until all are done or one fails; each gives how many of `all` it did.
    pub(super) async fn run<F: Future<Output = Result<usize, RequestError>>>(
        &self,
        what: &str,
        all: usize,
        requests: impl IntoIterator<Item = F>,
    ) -> Result<(), RequestError> {
        let bar = (self.is_terminal && all > 0).then(|| {
            let bar = ProgressBar::new(all as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {eta} left") {
                bar.set_style(style);
            }
            bar.set_message(what.to_owned());
            bar
        });
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
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        Ok(())
    }
}

/// Says something about the work.
pub(super) fn note(text: &str) {
    // A closed pipe is no fault.
    let _ = writeln!(io::stderr().lock(), "demo: {text}");
}

/// Says what came of it.
pub(super) fn say(text: &str) {
    // A closed pipe is no fault.
    let _ = writeln!(io::stdout().lock(), "{text}");
}
