//! A process that does not outlive the test.

use std::{
    ops::{Deref, DerefMut},
    process::{Child, ExitStatus},
};

use anyhow::{Context, Result};

use crate::wait::read_until;

/// A process that is killed when this is dropped. What it works on is dropped behind it: name it first in a struct.
#[derive(Debug)]
pub struct Killed(pub Child);

impl Killed {
    /// Waits until it has ended by itself; gives its status.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        let ended = read_until(async || Ok(self.0.try_wait()?), Option::is_some).await?;
        ended.context("it has not ended")
    }
}

impl Deref for Killed {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Killed {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
