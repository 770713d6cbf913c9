//! The `edge` command: settings, sockets, signals, notifications to the service manager.

mod config;
mod run;
mod settings;
mod sockets;

use std::{
    io::{IsTerminal as _, Write as _, stderr, stdout},
    process::ExitCode,
};

use clap::Parser as _;
use platform::settings::{ConfigError, LogFormat};
use tracing_subscriber::{EnvFilter, fmt};

pub use self::{
    config::{Config, edge_acme, fast_redirects, replica},
    settings::Settings,
};

/// The crates of the edge, which are the targets of its log lines. `edge` in a filter names all of them.
const CRATES: [&str; 5] = ["edge", "backing", "edge_tls", "replica", "scans"];

/// Exit code of settings that cannot be used (sysexits: EX_USAGE).
const USAGE: u8 = 64;

/// Serves short URLs close to whoever scans them; every setting is a flag, a variable or a key of the TOML file,
/// in this order of precedence. Sockets may come from systemd, named `edge`, `edge-tls` and `admin`, or in this
/// order.
#[derive(Debug, clap::Parser)]
#[command(name = "edge", version, about, long_about = None)]
struct Arguments {
    #[command(flatten)]
    settings: Settings,
}

/// Why the process ends.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Failed(String),
}

/// Runs the command; the code of the process: 0 after a stop that was asked for, 64 for settings that cannot be
/// used, else 1.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
            if error.use_stderr() {
                write_unknown_variables();
            }
            // A terminal that is gone needs no help.
            let _ = error.print();
            return code;
        }
    };
    match serve(arguments.settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(stderr(), "edge: {failure}");
            ExitCode::from(if matches!(failure, Failure::Config(_)) { USAGE } else { 1 })
        }
    }
}

fn serve(settings: Settings) -> Result<(), Failure> {
    let config = Config::read(settings).inspect_err(|_| write_unknown_variables())?;
    // The spool holds addresses of clients: files 0600, folders 0700.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    start_log(&config).inspect_err(|_| write_unknown_variables())?;
    for text in platform::variables::unknown_here() {
        tracing::warn!("{text}");
    }
    // Twice is no fault.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Requests are served by workers with runtimes of their own: this one has everything else.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("the runtime cannot start: {error}")))?;
    runtime.block_on(run::run(config))
}

/// Reports misspelt variables when a setting is refused before logging starts: they are often the cause.
fn write_unknown_variables() {
    for text in platform::variables::unknown_here() {
        let _ = writeln!(stderr(), "edge: {text}");
    }
}

/// A filter of the log in which `edge=LEVEL` is said of each crate of the edge.
#[must_use]
pub fn log_filter(filter: &str) -> String {
    platform::settings::log_filter(filter, "edge", &CRATES)
}

fn start_log(config: &Config) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(log_filter(&config.log)).map_err(|error| {
        ConfigError::new("RUST_LOG", format!("{error}; give a level such as info, or info,edge=debug"))
    })?;
    let builder = fmt().with_env_filter(filter).with_writer(stderr);
    // A logger that stands already is the test's.
    let _ = match config.log_format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => {
            let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            builder.with_ansi(colours).try_init()
        }
    };
    Ok(())
}

/// Prints a line for people and scripts; output may be closed.
fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}
