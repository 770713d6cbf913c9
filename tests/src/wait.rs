//! Waiting for what comes by itself, with a deadline.

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, timeout, timeout_at};

use crate::product::DEADLINE;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until something holds; `what` names it if it never does.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let wait = async {
        while !holds().await? {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    };
    timeout(DEADLINE, wait).await.with_context(|| format!("it never came: {what}"))?
}

/// Reads until what is read is as `is` says; gives it.
pub async fn read_until<T: Debug>(
    mut read: impl AsyncFnMut() -> Result<T>,
    is: impl Fn(&T) -> bool,
) -> Result<T> {
    let end = Instant::now() + DEADLINE;
    let mut last = None;
    loop {
        let found = timeout_at(end, read())
            .await
            .with_context(|| format!("no answer; the one before: {last:?}"))??;
        if is(&found) {
            return Ok(found);
        }
        ensure!(Instant::now() < end, "it stays {found:?}");
        last = Some(found);
        tokio::time::sleep(PAUSE).await;
    }
}
