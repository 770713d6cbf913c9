//! Waiting for what comes by itself, with a deadline.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use crate::product::DEADLINE;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until something holds; `what` names it if it never does.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds().await? {
        ensure!(begun.elapsed() < DEADLINE, "it never came: {what}");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Reads until what is read is as `is` says; gives it.
pub async fn read_until<T: Debug>(
    mut read: impl AsyncFnMut() -> Result<T>,
    is: impl Fn(&T) -> bool,
) -> Result<T> {
    let begun = Instant::now();
    loop {
        let found = read().await?;
        if is(&found) {
            return Ok(found);
        }
        ensure!(begun.elapsed() < DEADLINE, "it stays {found:?}");
        tokio::time::sleep(PAUSE).await;
    }
}
