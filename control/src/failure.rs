//! Exit codes of a command that fails.

use crate::config::ConfigError;

/// A wrong command line or setting (`EX_USAGE` of sysexits).
pub const EXIT_USAGE: u8 = 64;

/// A failure that a new start mends (`EX_TEMPFAIL` of sysexits).
pub const EXIT_START_AGAIN: u8 = 75;

/// Why a command failed; each is one line for people.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A setting cannot be used; nothing was started.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The process did not start, or had to stop.
    #[error("{0}")]
    Failed(String),
    /// A tool's work is not finished; some of it may be done.
    #[error("{0}")]
    Unfinished(String),
    /// The process must be restarted by its supervisor, and will then work.
    #[error("{0}")]
    StartAgain(String),
}

impl Failure {
    /// A part that failed, and why.
    pub fn failed(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }

    /// Work that is not finished, and why.
    pub fn unfinished(what: impl std::fmt::Display, error: impl std::fmt::Display) -> Self {
        Self::Unfinished(format!("{what}: {error}"))
    }

    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => EXIT_USAGE,
            Self::Failed(_) => 1,
            Self::Unfinished(_) => 2,
            Self::StartAgain(_) => EXIT_START_AGAIN,
        }
    }
}
