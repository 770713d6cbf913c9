//! The command line: reads it, runs one command, and turns its end into an exit code.

use std::{io, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};
use control::{cli, failure::Failure, telemetry};
use tokio_util::sync::CancellationToken;

use crate::{
    banner,
    config::{Config, Settings},
    tools, up,
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
    /// Fill the account with a brand to look at; --remove takes it away again.
    ///
    /// Makes products, items with a short link each, three months of scans all over the world, items that were copied,
    /// diverted, recalled, forged or never commissioned, their verdicts, two jobs, and a webhook that is switched off. All of
    /// it is scoped to the project "Waymark demo", and has the tag waymark-demo and the custom field waymarkDemo. Names and
    /// places are invented. A run that was cut short goes on when it is run again; a second run changes nothing.
    ///
    /// The scans are actions of the type scans with times in the past, which the secret key of an application of the
    /// demo reports. Verdicts believe them; hits and /scans/stats do not count them, because no edge saw them. Networks are
    /// those that are kept for documentation.
    ///
    /// --remove deletes what is scoped to the project and marked, all actions of the demo's items, and the project with its
    /// application. It refuses while the project has an application that is not the demo's. Each action is deleted by a
    /// request of its own: about 23,000 requests for 5,000 items. The audit trail and the log of events keep what happened,
    /// for their time. What happens in a demo is told to webhooks, reactions and streams of the account, like anything else.
    ///
    /// The key needs a role such as admin, in an enterprise account with a short domain. Exit codes: 0 the demo is
    /// there, or away; 1 nothing was done; 2 it is not finished; 64 wrong arguments.
    Demo(tools::demo::Args),
    /// Fetch QR codes to files.
    Qr(tools::qr::Args),
    /// Order many codes as one file, with the Things behind them if they are to be made; wait, and download the files.
    ///
    /// Exit codes: 0 the files are there, 1 nothing was ordered, 2 the order failed, was cancelled or could not be followed,
    /// 64 wrong arguments. Ctrl-C stops waiting; the order goes on, and --order waits for it again.
    Print(Box<tools::print::Args>),
    /// Create actions on many Thngs from a file of ids; list, watch and cancel such jobs.
    Jobs(tools::jobs::Args),
    /// Change many links at once, and undo such a change.
    Links(tools::links::Args),
    /// Make, list and revoke operator keys, directly in the database.
    Keys(tools::keys::Args),
    /// List, invite and remove operators, directly in the database; set a password, turn off a second factor that is lost.
    Operators(tools::operators::Args),
    /// Make keys that encrypt the secrets in the database, and change over to them.
    Secrets(tools::secrets::Args),
    /// Suspend accounts, take links and hosts down, make keys of the platform.
    Platform(tools::platform::Args),
    /// Check the audit trail.
    Audit(tools::audit::Args),
    /// Write a backup of the SQLite database to a file, while the service runs, and check it.
    Backup(tools::backup::BackupArgs),
    /// Put a backup in the place of the SQLite database; the service must not run.
    Restore(tools::backup::RestoreArgs),
    /// Show revision, edges, lag, scans and rates.
    Status(tools::status::Args),
    /// Print the completion script of a shell.
    Completion(tools::manual::Completion),
    /// Print the manual page, or write the pages of all commands.
    Man(tools::manual::Man),
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::usage("waymark", &error),
    };
    // Before any TLS: two providers in one process would make rustls panic.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail("waymark", 1, &error),
    };
    let is_up = matches!(cli.command, Command::Up(_));
    let code = match cli.command {
        Command::Up(settings) => runtime.block_on(run_up(*settings)),
        Command::Import(args) => runtime.block_on(tools::import::run(args)),
        Command::Export(args) => runtime.block_on(tools::export::run(args)),
        Command::Demo(args) => runtime.block_on(tools::demo::run(args)),
        Command::Qr(args) => runtime.block_on(tools::qr::run(args)),
        Command::Print(args) => runtime.block_on(tools::print::run(*args)),
        Command::Jobs(args) => runtime.block_on(tools::jobs::run(args)),
        Command::Links(args) => runtime.block_on(tools::links::run(args)),
        Command::Keys(args) => runtime.block_on(tools::keys::run(args)),
        Command::Operators(args) => runtime.block_on(tools::operators::run(args)),
        Command::Secrets(args) => runtime.block_on(tools::secrets::run(args)),
        Command::Platform(args) => runtime.block_on(tools::platform::run(args)),
        Command::Audit(args) => runtime.block_on(tools::audit::run(args)),
        Command::Backup(args) => runtime.block_on(tools::backup::run_backup(args)),
        Command::Restore(args) => runtime.block_on(tools::backup::run_restore(args)),
        Command::Status(args) => runtime.block_on(tools::status::run(args)),
        Command::Completion(args) => tools::manual::completion(&args, Cli::command()),
        Command::Man(args) => tools::manual::man(&args, Cli::command()),
    };
    // Whatever blocks in the background (a reader of stdin) must not hold the exit up.
    runtime.shutdown_background();
    code.unwrap_or_else(|error| {
        // `up` names what is misspelt in its log.
        if !is_up {
            cli::explain_refusal("waymark", &error);
        }
        cli::fail("waymark", error.exit_code(), &error)
    })
}

async fn run_up(settings: Settings) -> Result<ExitCode, Failure> {
    let explain = |error: &Failure| cli::explain_refusal("waymark", error);
    let config = Config::read(settings).map_err(Failure::from).inspect_err(explain)?;
    control::system::make_files_private();
    let telemetry = telemetry::start(&telemetry::Settings {
        filter: &edge::cli::log_filter(&config.log),
        format: config.log_format,
        otlp_url: config.otlp_url.as_deref(),
        service: "waymark",
    })
    .map_err(Failure::from)
    .inspect_err(explain)?;
    cli::warn_of_unknown_variables();
    let shutdown = CancellationToken::new();
    cli::stop_on_signal(shutdown.clone())?;
    let running = up::up(config.clone(), shutdown).await?;
    if let Err(error) = banner::print(&mut io::stdout().lock(), &running, &config, banner::colours()) {
        tracing::warn!(%error, "stdout is closed");
    }
    let ended = running.wait().await;
    telemetry.finish().await;
    ended.map(|()| ExitCode::SUCCESS)
}
