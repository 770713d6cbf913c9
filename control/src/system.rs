//! The system's clock and random source, as every binary uses them.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use kernel::service::{Random, RandomUnavailable};
use shared::time::{Clock, UnixMillis};
use web::limiter::Ticks;

/// Makes files of this process private from now on: files 0600, folders 0700.
///
/// The database engine and the blob store create files by themselves, so setting the mode of each file is not enough.
pub fn make_files_private() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> UnixMillis {
        // A clock before 1970 counts as 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The system's source of random bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, out: &mut [u8]) -> Result<(), RandomUnavailable> {
        getrandom::fill(out).map_err(|_| RandomUnavailable)
    }
}

/// The time since now, which never goes back.
#[must_use]
pub fn system_ticks() -> Ticks {
    let start = Instant::now();
    Ticks::new(move || start.elapsed())
}

/// A random name of 16 hexadecimal digits.
///
/// # Errors
/// The system has no random bits to give.
pub fn random_name() -> Result<String, RandomUnavailable> {
    use std::fmt::Write as _;
    let mut bytes = [0; 8];
    SystemRandom.fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(16), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    }))
}
