//! The wall clock that a process sees, by libfaketime; its other clocks are the machine's.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// A clock that processes read out of a file.
#[derive(Debug, Clone)]
pub struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// A clock that is right, in a file that is made.
    ///
    /// # Errors
    /// libfaketime is not installed, or the file cannot be written.
    pub fn new(file: PathBuf) -> Result<Self> {
        let library = std::fs::read_dir("/usr/lib")?
            .filter_map(|entry| Some(entry.ok()?.path().join("faketime/libfaketimeMT.so.1")))
            .find(|path| path.is_file())
            .context("libfaketime is not installed: deploy/setup test")?;
        let clock = Self { library, file };
        clock.set(0)?;
        Ok(clock)
    }

    /// Moves it by so many seconds from the machine's.
    pub fn set(&self, seconds: i64) -> Result<()> {
        // Exchanged at once: half a file would be read as another time.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}\n"))?;
        Ok(std::fs::rename(new, &self.file)?)
    }

    /// The environment of a process that sees it.
    #[must_use]
    pub fn settings(&self) -> [(&'static str, String); 5] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }
}
