//! `waymark jobs`: lists, shows and cancels jobs; `submit` uploads a file of ids, has actions created on its Thngs, and follows the job to its end.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Subcommand, ValueEnum};
use indicatif::ProgressBar;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    client::{ApiArgs, Client, RequestError},
    shown::{bar, end, note, say},
};
use crate::{config::ConfigError, failure::Failure};

mod manage;

/// Time between two looks at a job.
const LOOK: Duration = Duration::from_millis(300);

/// Time between two plain lines, where there is no terminal.
const PERIOD: Duration = Duration::from_secs(5);

/// Exit code of a job that ran to its end, with operations that failed.
const SOME_FAILED: u8 = 1;
/// Exit code of a job that was cancelled or failed as a whole.
const NOT_DONE: u8 = 2;

/// Arguments of `waymark jobs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Upload a file of ids, have actions created on its Thngs, and follow the job to its end.
    ///
    /// Prints the operations that failed. Exit codes: 0 all operations succeeded, 1 some failed or nothing was
    /// submitted, 2 the job failed as a whole, was cancelled or could not be followed, 64 wrong arguments.
    /// Ctrl-C stops following; the job goes on.
    Submit(Box<Submit>),
    /// List jobs, newest first.
    List(manage::List),
    /// Show one job; with --follow, until it has ended.
    ///
    /// Exit codes are those of submit; 0 for a job that has not ended.
    Status(manage::Status),
    /// Cancel a job; what it created stays.
    Cancel(manage::Cancel),
}

/// What the lines of the file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ids {
    /// Ids of Thngs
    Platform,
    /// Identifiers of Thngs; with --id-key their values alone
    External,
    /// Short ids of redirections of Thngs
    Short,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One id a line, with a header or without
    Csv,
    /// An archive of such files
    Zip,
}

#[derive(Debug, clap::Args)]
struct Submit {
    #[command(flatten)]
    api: ApiArgs,
    /// CSV file with one id a line, or a ZIP archive of such
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Type of the actions
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// What the lines are
    #[arg(long, default_value = "platform")]
    ids: Ids,
    /// Key of the identifiers [default: each line is KEY:VALUE]
    #[arg(long, value_name = "KEY")]
    id_key: Option<String>,
    /// Domain of the short ids [default: the account's first]
    #[arg(long, value_name = "HOST")]
    short_domain: Option<String>,
    /// Form of the file [default: by its ending, else csv]
    #[arg(long)]
    format: Option<Format>,
    /// Further members of the actions, as a JSON object such as {"tags":["batch 7"]}
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Project that the actions are scoped to
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Send no notification for each action
    #[arg(long)]
    no_notifications: bool,
    /// Let no rule react to each action
    #[arg(long)]
    no_reactions: bool,
    /// Operations that failed to print at most
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    show_failures: u64,
    /// Print the job's id and leave
    #[arg(long)]
    no_wait: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    upload_url: Option<String>,
    content_url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    id: String,
    created_at: i64,
    status: String,
    #[serde(default)]
    completed_at: Option<i64>,
    progress: Progress,
    failed_operations_amount: u64,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    amount_requested: u64,
    amount_completed: u64,
}

#[derive(Debug, Deserialize)]
struct LogEntry {
    payload: Map<String, Value>,
    message: String,
}

/// Runs the command.
///
/// # Errors
/// An argument cannot be used, or the service refuses or does not answer.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::Submit(submit) => self::submit(*submit).await,
        Command::List(args) => manage::list(args).await,
        Command::Status(args) => manage::status(args).await,
        Command::Cancel(args) => manage::cancel(args).await,
    }
}

async fn submit(args: Submit) -> Result<ExitCode, Failure> {
    let payload = payload(&args)?;
    let client = Client::new(&args.api)?;
    let failed = |error: RequestError| Failure::failed("jobs", error);
    let name = args.file.file_name().map_or_else(|| "ids".into(), |name| name.to_string_lossy());
    let key =
        format!("jobs-{:016x}", getrandom::u64().map_err(|error| Failure::failed("random bits", error))?);
    let body = json!({"name": name.chars().take(256).collect::<String>(), "privateAccess": true});
    let file: File = client
        .post_once(&client.url(&["files"], []), &format!("{key}-file"), body.to_string().into())
        .await
        .map_err(failed)?;
    let upload_url =
        file.upload_url.ok_or_else(|| Failure::Failed("jobs: the key may not upload files".to_owned()))?;
    client.upload(&upload_url, &args.file).await?;
    let body = json!({"payload": payload, "target": "THNGS", "options": options(&args),
        "input": input(&args, &file.content_url)});
    let query = args.project.iter().map(|project| ("project", project.as_str()));
    let url = client.url(&["jobs", "actions"], query);
    let job = client.submit(&url, &key, body.to_string().into()).await.map_err(failed)?;
    if args.no_wait {
        say(job.path().rsplit('/').next().unwrap_or_default());
        return Ok(ExitCode::SUCCESS);
    }
    let unfinished = |error: RequestError| Failure::unfinished(&job, error);
    let ended = follow(&client, &job).await.map_err(unfinished)?;
    print_failures(&client, &job, args.show_failures).await.map_err(unfinished)?;
    let Job { status, message, progress, failed_operations_amount: failures, .. } = ended;
    let (done, id) = (progress.amount_completed, job.path().rsplit('/').next().unwrap_or_default());
    say(&format!(
        "{status}: {} actions created, {failures} operations failed, job {id}",
        done - failures.min(done)
    ));
    if let Some(message) = message {
        note("jobs", &message);
    }
    Ok(code(&status))
}

/// The exit code of a job that has ended so.
fn code(status: &str) -> ExitCode {
    match status {
        "COMPLETED" => ExitCode::SUCCESS,
        "COMPLETED_WITH_FAILURES" => ExitCode::from(SOME_FAILED),
        _ => ExitCode::from(NOT_DONE),
    }
}

/// The template of the actions.
fn payload(args: &Submit) -> Result<Map<String, Value>, Failure> {
    let mut payload = match &args.payload {
        None => Map::new(),
        Some(text) => serde_json::from_str(text)
            .map_err(|error| ConfigError::new("--payload", format!("it is no JSON object: {error}")))?,
    };
    payload.insert("type".to_owned(), args.kind.as_str().into());
    Ok(payload)
}

fn input(args: &Submit, location: &str) -> Value {
    let is_zip = |file: &Path| file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip"));
    let format = args.format.unwrap_or(if is_zip(&args.file) { Format::Zip } else { Format::Csv });
    json!({
        "type": "FILE",
        "contentType": match args.ids {
            Ids::Platform => "PLATFORM_IDS",
            Ids::External => "EXTERNAL_IDS",
            Ids::Short => "SHORT_IDS",
        },
        "format": match format {
            Format::Csv => "CSV",
            Format::Zip => "ZIP",
        },
        "location": location,
        // What does not fit the kind of ids is for the service to refuse.
        "key": args.id_key,
        "shortDomain": args.short_domain,
    })
}

fn options(args: &Submit) -> Vec<Value> {
    [
        ("SINGLE_RESOURCE_NOTIFICATION", args.no_notifications),
        ("SINGLE_RESOURCE_REACTIONS", args.no_reactions),
    ]
    .into_iter()
    .filter(|(_, is_set)| *is_set)
    .map(|(kind, enabled)| json!({"type": kind, "enabled": enabled}))
    .collect()
}

/// Looks at a job until it has ended, and shows how far it is.
async fn follow(client: &Client, url: &Url) -> Result<Job, RequestError> {
    let shown = Shown::start();
    loop {
        let job: Job = client.read(url).await?;
        shown.show(&job);
        if job.completed_at.is_some() {
            end(shown.bar.as_ref());
            return Ok(job);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A bar on a terminal, a plain line now and then elsewhere.
struct Shown {
    bar: Option<ProgressBar>,
    begun: Instant,
    said: std::cell::Cell<Instant>,
}

impl Shown {
    fn start() -> Self {
        let template = "{bar:30} {percent}% {pos}/{len} {msg} {eta} left";
        Self {
            bar: bar(Some(0), template),
            begun: Instant::now(),
            said: std::cell::Cell::new(Instant::now()),
        }
    }

    fn show(&self, job: &Job) {
        let (done, all) = (job.progress.amount_completed, job.progress.amount_requested);
        let rate = done as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let text = format!("{}, {rate:.0}/s, {} failed", job.status, job.failed_operations_amount);
        if let Some(bar) = &self.bar {
            bar.set_length(all);
            bar.set_position(done);
            bar.set_message(text);
        } else if self.said.get().elapsed() >= PERIOD {
            self.said.set(Instant::now());
            note("jobs", &format!("{done} of {all}, {text}"));
        }
    }
}

/// Prints the operations that failed, in the order of the file.
async fn print_failures(client: &Client, job: &Url, most: u64) -> Result<(), RequestError> {
    let mut url = job.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push("logs");
    }
    url.query_pairs_mut().extend_pairs([("sortOrder", "ASCENDING"), ("perPage", "100")]);
    let (mut next, mut printed) = (Some(url), 0);
    while let Some(url) = next.filter(|_| printed < most) {
        let (entries, following): (Vec<LogEntry>, _) = client.read_page(&url).await?;
        for LogEntry { payload, message } in entries {
            if printed == most {
                note("jobs", &format!("more than {most} operations failed; the job's logs have the others"));
                break;
            }
            let id = ["id", "value", "shortId"].into_iter().find_map(|name| payload.get(name)?.as_str());
            if !say(&format!("{}\t{message}", id.unwrap_or_default())) {
                return Ok(());
            }
            printed += 1;
        }
        next = following;
    }
    Ok(())
}
