//! A process of a campaign, which is killed and started again, and the wall clock that it sees.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

use crate::clock::Clock;

/// A process that is started again with the same settings.
pub struct Process {
    /// What it is called in the report.
    pub name: String,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) log: PathBuf,
    pub(super) clock: Option<Clock>,
    pub(super) child: Option<Child>,
}

impl Process {
    /// Starts it.
    pub fn start(&mut self) -> Result<()> {
        let mut command = Command::new(&self.program);
        let log = File::options().create(true).append(true).open(&self.log)?;
        command.args(&self.arguments).envs(self.settings.iter().cloned());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if let Some(clock) = &self.clock {
            command.envs(clock.settings());
        }
        self.child = Some(command.spawn().with_context(|| self.program.display().to_string())?);
        Ok(())
    }

    /// Starts it again if it ended by itself, as a service manager does; gives whether it had.
    pub fn look_after(&mut self) -> Result<bool> {
        let Some(child) = &mut self.child else { return Ok(false) };
        if child.try_wait()?.is_none() {
            return Ok(false);
        }
        self.start()?;
        Ok(true)
    }

    /// Moves its wall clock by so many seconds from the machine's.
    pub fn set_clock(&self, seconds: i64) -> Result<()> {
        self.clock.as_ref().map_or(Ok(()), |clock| clock.set(seconds))
    }

    /// Kills it: no time to tidy up.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
