//! A process of a campaign, which is killed and started again, and the wall clock that it sees.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

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

/// The wall clock that a process sees, by libfaketime; its other clocks are the machine's.
#[derive(Clone)]
pub(super) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    pub(super) fn new(file: PathBuf) -> Result<Self> {
        let library = std::fs::read_dir("/usr/lib")?
            .filter_map(|entry| Some(entry.ok()?.path().join("faketime/libfaketimeMT.so.1")))
            .find(|path| path.is_file())
            .context("libfaketime is not installed: deploy/setup test")?;
        let clock = Self { library, file };
        clock.set(0)?;
        Ok(clock)
    }

    fn set(&self, seconds: i64) -> Result<()> {
        // Exchanged at once: half a file would be read as another time.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}\n"))?;
        Ok(std::fs::rename(new, &self.file)?)
    }

    fn settings(&self) -> [(&'static str, String); 5] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// The program does not exist.
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
    ///
    /// # Errors
    /// It cannot be started.
    pub fn look_after(&mut self) -> Result<bool> {
        let Some(child) = &mut self.child else { return Ok(false) };
        if child.try_wait()?.is_none() {
            return Ok(false);
        }
        self.start()?;
        Ok(true)
    }

    /// Moves its wall clock by so many seconds from the machine's.
    ///
    /// # Errors
    /// The file cannot be written.
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
