//! How a command ends badly, and the exit code of each way.

use crate::config::ConfigError;

/// A wrong command line or setting (`EX_USAGE` of sysexits).
pub const EXIT_USAGE: u8 = 64;

/// Why a command did not do what it was asked; one line for people each.
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
}

impl Failure {
    pub(crate) fn failed(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }

    pub(crate) fn unfinished(what: impl std::fmt::Display, error: impl std::fmt::Display) -> Self {
        Self::Unfinished(format!("{what}: {error}"))
    }

    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => EXIT_USAGE,
            Self::Failed(_) => 1,
            Self::Unfinished(_) => 2,
        }
    }
}
