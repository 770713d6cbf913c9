//! What came of a run: counts, latencies, and the first thing that was wrong.

use std::{
    io::{self, Write},
    time::Duration,
};

use anyhow::Result;

use ::tests::hist::Hist;

/// What came of a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct Outcome {
    /// Answers, right and wrong.
    pub(crate) answers: u64,
    /// Answers with a redirect's status.
    pub(crate) redirects: u64,
    /// Wrong or missing answers, broken connections.
    pub(crate) wrong: u64,
    /// The first thing that was wrong.
    pub(crate) first_wrong: Option<String>,
    /// Latencies.
    pub(crate) hist: Hist,
    /// From the first request to the last answer.
    pub(crate) took: Duration,
    /// Bytes of all answers.
    pub(crate) bytes: u64,
    /// Latencies window by window, if that was asked for.
    pub(crate) windows: Vec<Hist>,
}

impl Outcome {
    /// Counts an answer, or a missing one.
    pub(crate) fn wrong(&mut self, what: String) {
        self.wrong += 1;
        self.first_wrong.get_or_insert(what);
    }

    /// Takes what was wrong in another run.
    pub(crate) fn add_wrong(&mut self, other: Self) {
        self.wrong += other.wrong;
        self.first_wrong = self.first_wrong.take().or(other.first_wrong);
    }

    /// Whether nothing was wrong; tells what was.
    pub(crate) fn is_right(&self) -> Result<bool> {
        if let Some(first) = &self.first_wrong {
            writeln!(io::stderr(), "WRONG: {} answers, first: {first}", self.wrong)?;
        }
        Ok(self.wrong == 0)
    }
}
