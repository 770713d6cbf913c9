//! The log: lines for people on a terminal, JSON for machines, always on stderr.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{ConfigError, LogFormat};

/// Sends the log of this process to stderr; the second call in a process changes nothing.
///
/// # Errors
/// The filter cannot be read.
pub fn start(filter: &str, format: LogFormat) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        ConfigError::new("RUST_LOG", format!("{error}; give a level such as info, or info,edge=debug"))
    })?;
    let builder = fmt().with_env_filter(filter).with_writer(stderr);
    // A logger that stands already is the test's.
    let _ = match format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => {
            let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            builder.with_ansi(colours).try_init()
        }
    };
    Ok(())
}
