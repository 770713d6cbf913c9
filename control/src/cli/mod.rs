//! The command line of `control`: parses it, runs one command, and maps the result to an exit code.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{Parser, Subcommand, error::ErrorKind};
use kernel::store::{Ctx, Db};
use push::store::publishers;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, ConfigError, Place, SecretKeyFile, Settings},
    failure::{EXIT_USAGE, Failure},
    secret_key_file, serve, telemetry,
};

mod accounts;
pub mod audit;
mod edge_keys;
mod export;
pub mod keys;
mod move_scans;
pub mod operators;
pub mod platform;
mod quotas;
pub mod secrets;
mod worker;

/// The control plane of Waymark: the API, the change stream to edges, the intake of scans.
#[derive(Debug, Parser)]
#[command(name = "control", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API and the edges; several replicas may do so at once.
    ///
    /// Any replica answers for all edges of the fleet, and holds the streams of its share of them.
    ///
    /// Each setting is a flag, a variable or a key of the TOML file, in that order of precedence. A key of
    /// the file is the variable in lower case without WAYMARK_, such as api_listen. A setting that cannot
    /// be used ends the start with exit code 64, before a port is bound. Exit code 75 means that a new start
    /// will work.
    Serve(Box<Settings>),
    /// Work on jobs and serve nothing; as many as wanted may do so beside the replicas, which work on jobs too.
    Worker(worker::Args),
    /// Bring the schema of the database up to date.
    Migrate {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        file: SecretKeyFile,
    },
    /// Make, list, rotate and revoke operator keys.
    Keys(keys::Args),
    /// List, invite and remove operators; set a password, turn off a second factor that is lost.
    Operators(operators::Args<Place>),
    /// Make accounts and give them short domains.
    Accounts(accounts::Args),
    /// Make, list and revoke the keys of edges.
    EdgeKeys(edge_keys::Args),
    /// Suspend accounts, take links and hosts down, make keys of the platform.
    Platform(platform::Args),
    /// Make keys that encrypt the secrets in the database, and change over to them.
    Secrets(secrets::Args),
    /// Check the audit trail.
    Audit(audit::Args),
    /// Write the actions of whole days as files, account by account, for engines of analytics.
    ///
    /// Each day of UTC by which an action was made becomes account=ID/DATE.ndjson.gz, a line for each action as the
    /// API shows it, with its context, or with --format parquet account=ID/day=DATE/actions.parquet, a row for each.
    /// Days whose file is there are passed over: run it each day.
    Export(export::Args),
    /// Move the scans of the database into ClickHouse (WAYMARK_SCANS_URL), while no control and no worker runs.
    ///
    /// They are copied account by account, and removed from the database when all are there.
    MoveScans(move_scans::Args),
    /// Have the view that edges read in Redis rebuilt; the running replicas do it.
    RebuildEdges {
        /// The region whose view it is [default: every region]
        #[arg(long, value_name = "NAME")]
        region: Option<String>,
        #[command(flatten)]
        place: Place,
    },
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage("control", &error),
    };
    // Before any TLS: two providers in one process would make rustls panic.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail("control", 1, &error),
    };
    let code = runtime.block_on(async {
        let ended = match cli.command {
            // These two name what is misspelt in their log.
            Command::Serve(settings) => return run_serve(*settings).await,
            Command::Worker(args) => return worker::run(args).await,
            Command::Migrate { place, file } => migrate(place, file).await,
            Command::Keys(args) => keys::run(args).await,
            Command::Operators(args) => operators::run(args).await,
            Command::Accounts(args) => accounts::run(args).await,
            Command::Audit(args) => audit::run(args).await,
            Command::Export(args) => export::run(args).await,
            Command::MoveScans(args) => move_scans::run(args).await,
            Command::EdgeKeys(args) => edge_keys::run(args).await,
            Command::Platform(args) => platform::run(args).await,
            Command::Secrets(args) => secrets::run(args).await,
            Command::RebuildEdges { region, place } => rebuild_edges(region, place).await,
        };
        ended.inspect_err(|error| explain_refusal("control", error))
    });
    // Whatever blocks in the background must not hold the exit up.
    runtime.shutdown_background();
    code.unwrap_or_else(|error| fail("control", error.exit_code(), &error))
}

async fn run_serve(settings: Settings) -> Result<ExitCode, Failure> {
    let explain = |error: &Failure| explain_refusal("control", error);
    let config = Config::read(settings).map_err(Failure::from).inspect_err(explain)?;
    crate::system::make_files_private();
    let telemetry = telemetry::start(&telemetry::Settings {
        filter: &config.log,
        format: config.log_format,
        otlp_url: config.otlp_url.as_deref(),
        service: "control",
    })
    .map_err(Failure::from)
    .inspect_err(explain)?;
    warn_of_unknown_variables();
    let shutdown = CancellationToken::new();
    stop_on_signal(shutdown.clone())?;
    let running = serve::serve(config, shutdown).await?;
    // A closed pipe is no fault.
    let _ = running.print(&mut io::stdout().lock());
    // Without systemd there is nobody to notify.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let ended = running.wait().await;
    telemetry.finish().await;
    ended.map(|()| ExitCode::SUCCESS)
}

/// Names variables that look like settings and are none, such as misspelt ones.
pub fn warn_of_unknown_variables() {
    for text in ::platform::variables::unknown_here() {
        tracing::warn!("{text}");
    }
}

/// Names them on stderr where a setting is refused before there is a log: a misspelt one is often the cause.
pub fn explain_refusal(program: &str, error: &Failure) {
    if error.exit_code() == EXIT_USAGE {
        write_unknown_variables(program);
    }
}

fn write_unknown_variables(program: &str) {
    for text in ::platform::variables::unknown_here() {
        let _ = writeln!(io::stderr().lock(), "{program}: {text}");
    }
}

async fn migrate(place: Place, file: SecretKeyFile) -> Result<ExitCode, Failure> {
    let url = place.clone().database_url()?;
    let key_file = place.secret_key_file(file)?;
    secret_key_file::read(&key_file)?;
    let db = serve::connect(&url).await?;
    serve::migrate(&db).await?;
    serve::prepare(&db, "", &key_file).await?;
    db.close().await;
    say("The schema is up to date.");
    Ok(ExitCode::SUCCESS)
}

async fn rebuild_edges(region: Option<String>, place: Place) -> Result<ExitCode, Failure> {
    let db = connect(place).await?;
    let mut tx = db.begin(&Ctx::default()).await.map_err(failed)?;
    let regions = publishers::request_rebuild(&mut tx, region.as_deref()).await.map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    db.close().await;
    if regions.is_empty() {
        say("No region is known by that name: one is once a replica has run for it.");
        return Ok(ExitCode::from(1));
    }
    say(&format!("The view is being rebuilt in: {}.", regions.join(", ")));
    Ok(ExitCode::SUCCESS)
}

/// Opens the database of a command, whose schema this release can use.
async fn connect(place: Place) -> Result<Db, Failure> {
    let url = place.database_url()?;
    let db = serve::connect(&url).await?;
    serve::check_schema(&db).await?;
    Ok(db)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed("the database", error)
}

/// Longest name and address, in characters.
const MAX_TEXT: usize = 256;

fn text(key: &'static str, text: String) -> Result<String, ConfigError> {
    let count = text.trim().chars().count();
    if (1..=MAX_TEXT).contains(&count) && !text.chars().any(char::is_control) {
        return Ok(text.trim().to_owned());
    }
    Err(ConfigError::new(key, format!("give 1 to {MAX_TEXT} characters")))
}

/// Writes a line to stdout.
fn say(line: &str) {
    // A closed pipe is no fault.
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// The first Ctrl-C or SIGTERM drains and stops; the second ends the process at once.
///
/// # Errors
/// Signals cannot be listened to.
pub fn stop_on_signal(shutdown: CancellationToken) -> Result<(), Failure> {
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

/// Answers a command line that is none: help is no fault, all else is one line and exit code 64.
#[must_use]
pub fn usage(program: &str, error: &clap::Error) -> ExitCode {
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
            write_unknown_variables(program);
            fail(program, EXIT_USAGE, &line.strip_prefix("error: ").unwrap_or(&line))
        }
    }
}

/// Says on stderr why a program ends, in one line.
#[must_use]
pub fn fail(program: &str, code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    // One line, whatever the error holds.
    let text = error.to_string().replace('\n', " ");
    let _ = writeln!(io::stderr().lock(), "{program}: {text}");
    ExitCode::from(code)
}
