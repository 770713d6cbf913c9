//! A small file system for one edge, so that its disk can be full.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Room for a segment that is shipped and one that is written, and for what the edge holds.
const SIZE: &str = "size=160m";

/// Unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Makes one at an empty folder.
    ///
    /// # Errors
    /// This process may not: it takes the right to mount.
    pub fn mount(path: &Path) -> Result<Self> {
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "tmpfs"])
            .arg(path)
            .output()
            .context("mount")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Fills it to the last byte and takes what becomes free for as long as told, then makes room again.
    ///
    /// # Errors
    /// Something else than that it is full.
    pub async fn fill(&self, hold: Duration) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < hold {
            self.fill_up()?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.make_room()
    }

    /// Fills it to the last byte.
    ///
    /// # Errors
    /// Something else than that it is full.
    pub fn fill_up(&self) -> Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(self.filling())?;
        [1 << 20, 4 << 10, 64, 1].into_iter().try_for_each(|size| write_until_full(&mut file, size))
    }

    /// Gives back what was taken to fill it.
    pub fn make_room(&self) -> Result<()> {
        Ok(fs::remove_file(self.filling())?)
    }

    fn filling(&self) -> PathBuf {
        self.path.join("fill")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that was killed a moment ago may still be in it. What fails here was reported by
        // nobody's need: the folder stays mounted, empty.
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}

fn write_until_full(file: &mut File, size: usize) -> Result<()> {
    let bytes = vec![0; size];
    loop {
        match file.write(&bytes) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
