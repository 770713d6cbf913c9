//! How far an import is: a bar on a terminal, a plain line now and then elsewhere.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use indicatif::ProgressBar;

use super::state::State;
use crate::tools::shown::{self, bar, end};

/// Time between two plain lines.
const PERIOD: Duration = Duration::from_secs(5);

/// Shows progress on stderr.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    size: Option<u64>,
    begun: Instant,
    before: u64,
    shown: Cell<Instant>,
}

impl Progress {
    /// Begins where an earlier run stopped; says what columns are not read.
    pub(super) fn start(state: &State, size: Option<u64>, ignored: &[&str]) -> Self {
        if !ignored.is_empty() {
            note(&format!("columns that are not read: {}", ignored.join(", ")));
        }
        if state.chunks > 0 {
            note(&format!("going on behind line {}", state.line));
        }
        let template = "{bar:30} {percent}% {msg} {eta} left";
        let bar = size.and_then(|size| bar(Some(size), template));
        let now = Instant::now();
        Self { bar, size, begun: now, before: state.rows(), shown: Cell::new(now) }
    }

    /// Shows how far it is.
    pub(super) fn show(&self, state: &State) {
        let rows = state.rows().saturating_sub(self.before);
        let rate = rows as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let text = format!("{}, {rate:.0} rows/s", state.counts());
        if let Some(bar) = &self.bar {
            bar.set_message(text);
            bar.set_position(state.offset);
        } else if self.shown.get().elapsed() >= PERIOD {
            self.shown.set(Instant::now());
            match self.size.filter(|size| *size > 0) {
                Some(size) => note(&format!("{}%, {text}", state.offset * 100 / size)),
                None => note(&text),
            }
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        end(self.bar.as_ref());
    }
}

/// Says something on stderr, in one line: texts of a file must not steer the terminal.
pub(super) fn note(text: &str) {
    let text: String = text.chars().map(|sign| if sign.is_control() { '\u{fffd}' } else { sign }).collect();
    shown::note("import", &text);
}
