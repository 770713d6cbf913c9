//! Work in the background that brings rows of older releases up to date, in steps until none is left.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::store::StoreError;

/// Shortest time between two steps, in which others write; it is at least as long as the step.
const PAUSE: Duration = Duration::from_millis(10);

/// Time until the next try after a failure, and where a step has to wait for others.
const WAIT: Duration = Duration::from_secs(60);

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Rows that are up to date now.
    pub rows: usize,
    /// What comes after it.
    pub next: Next,
}

/// What comes after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another one, soon.
    Step,
    /// Another one, later.
    Wait,
    /// Nothing: no row is left.
    Done,
}

/// Does `open` once and then `step` until no row is left, and waits for `shutdown`; `name` is for the log.
///
/// A step stores its progress in its own transaction, so it can be done again after a failure.
pub async fn run<O, S>(
    name: &'static str,
    open: impl Fn() -> O,
    step: impl Fn() -> S,
    shutdown: CancellationToken,
) where
    O: Future<Output = Result<(), StoreError>>,
    S: Future<Output = Result<Step, StoreError>>,
{
    let rows = fill(name, open, step, &shutdown, WAIT).await;
    if rows > 0 {
        tracing::info!(backfill = name, rows, "rows of older releases were brought up to date");
    }
    shutdown.cancelled().await;
}

async fn fill<O, S>(
    name: &'static str,
    open: impl Fn() -> O,
    step: impl Fn() -> S,
    shutdown: &CancellationToken,
    wait: Duration,
) -> usize
where
    O: Future<Output = Result<(), StoreError>>,
    S: Future<Output = Result<Step, StoreError>>,
{
    let (mut rows, mut is_open) = (0, false);
    while !shutdown.is_cancelled() {
        let begun = Instant::now();
        let stepped = async {
            if !is_open {
                open().await?;
                is_open = true;
            }
            step().await
        };
        let pause = match stepped.await {
            Ok(done) => {
                rows += done.rows;
                match done.next {
                    Next::Step => begun.elapsed().max(PAUSE),
                    Next::Wait => wait,
                    Next::Done => break,
                }
            }
            Err(error) => {
                tracing::warn!(%error, backfill = name, "a step failed and is done again later");
                wait
            }
        };
        shutdown.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn it_goes_on_until_no_row_is_left() {
        let (opened, stepped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let open = || async {
            match opened.fetch_add(1, Ordering::Relaxed) {
                0 => Err(StoreError::Busy),
                _ => Ok(()),
            }
        };
        let step = || async {
            match stepped.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(Step { rows: 2, next: Next::Step }),
                1 => Err(StoreError::Busy),
                2 => Ok(Step { rows: 0, next: Next::Wait }),
                _ => Ok(Step { rows: 1, next: Next::Done }),
            }
        };
        let rows = fill("test", open, step, &CancellationToken::new(), Duration::ZERO).await;
        assert_eq!((rows, opened.into_inner(), stepped.into_inner()), (3, 2, 4));
    }
}
