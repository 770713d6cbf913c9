//! The command line: reads it, runs one command, and turns its end into an exit code.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{Parser, Subcommand, error::ErrorKind};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    banner,
    config::{Config, Settings},
    failure::{EXIT_USAGE, Failure},
    logging, tools, up,
};

/// Short URLs and QR codes for products and things.
#[derive(Debug, Parser)]
#[command(name = "waymark", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start everything in this process: API, edge, SQLite.
    ///
    /// Each setting is a flag, a variable or a key of the TOML file, in that order of precedence. A key of
    /// the file is the variable in lower case without WAYMARK_, such as api_listen.
    Up(Box<Settings>),
    /// Create redirections from a CSV or NDJSON file; an import that was cut short goes on.
    Import(tools::import::Args),
    /// Write all redirections as CSV or NDJSON.
    Export(tools::export::Args),
    /// Fetch QR codes to files.
    Qr(tools::qr::Args),
    /// Make and revoke operator keys, directly in the database.
    Keys(tools::keys::Args),
    /// Show revision, edges, lag, scans and rates.
    Status(tools::status::Args),
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    // Before any TLS: two providers in one process would make rustls panic.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &error),
    };
    let code = match cli.command {
        Command::Up(settings) => runtime.block_on(run_up(*settings)),
        Command::Import(args) => runtime.block_on(tools::import::run(args)),
        Command::Export(args) => runtime.block_on(tools::export::run(args)),
        Command::Qr(args) => runtime.block_on(tools::qr::run(args)),
        Command::Keys(args) => runtime.block_on(tools::keys::run(args)),
        Command::Status(args) => runtime.block_on(tools::status::run(args)),
    };
    // Whatever blocks in the background (a reader of stdin) must not hold the exit up.
    runtime.shutdown_background();
    code.unwrap_or_else(|error| fail(error.exit_code(), &error))
}

async fn run_up(settings: Settings) -> Result<ExitCode, Failure> {
    let config = Config::read(settings)?;
    logging::start(&config)?;
    let shutdown = CancellationToken::new();
    stop_on_signal(shutdown.clone())?;
    let running = up::up(config.clone(), shutdown).await?;
    if let Err(error) = banner::print(&mut io::stdout().lock(), &running, &config, banner::colours()) {
        tracing::warn!(%error, "stdout is closed");
    }
    running.wait().await?;
    Ok(ExitCode::SUCCESS)
}

/// The first Ctrl-C or SIGTERM drains and stops; the second ends the process at once.
fn stop_on_signal(shutdown: CancellationToken) -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::failed("signals", error));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        shutdown.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // 128 + SIGINT, as shells count.
        std::process::exit(130);
    });
    Ok(())
}

fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe (`| head`) is no fault.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(EXIT_USAGE)
        }
        _ => {
            let text = error.to_string();
            let lines: Vec<&str> = text
                .lines()
                .map(str::trim)
                .take_while(|line| !line.starts_with("Usage:"))
                .filter(|line| !line.is_empty())
                .collect();
            let line = lines.join(" ");
            fail(EXIT_USAGE, &line.strip_prefix("error: ").unwrap_or(&line))
        }
    }
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    // One line, whatever the error holds.
    let text = error.to_string().replace('\n', " ");
    let _ = writeln!(io::stderr().lock(), "waymark: {text}");
    ExitCode::from(code)
}
