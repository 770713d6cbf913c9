//! `waymark jobs list`, `status` and `cancel`.

use std::process::ExitCode;

use reqwest::Url;

use super::{Job, code, follow, note, print_failures, say};
use crate::{
    config::ConfigError,
    failure::Failure,
    tools::client::{ApiArgs, Client, RequestError},
};

/// Arguments of `waymark jobs list`.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    #[command(flatten)]
    api: ApiArgs,
    /// Only jobs in this state, such as EXECUTING or FAILED
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Jobs to print at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

/// Arguments of `waymark jobs status`.
#[derive(Debug, clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    api: ApiArgs,
    /// Id of the job, as submit and list print it
    #[arg(value_name = "ID")]
    id: String,
    /// Follow the job to its end
    #[arg(long)]
    follow: bool,
    /// Operations that failed to print at most
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    show_failures: u64,
}

/// Arguments of `waymark jobs cancel`.
#[derive(Debug, clap::Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    api: ApiArgs,
    /// Id of the job
    #[arg(value_name = "ID")]
    id: String,
}

fn failed(error: RequestError) -> Failure {
    Failure::failed("jobs", error)
}

/// The URL of a job.
fn url(client: &Client, id: &str) -> Result<Url, Failure> {
    if !shared::id::is_valid(id) {
        return Err(ConfigError::new("ID", format!("{id:?} is no id of a job")).into());
    }
    Ok(client.url(&["jobs", "actions", id], []))
}

/// Prints a line for each job, newest first.
pub(super) async fn list(args: List) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?.brief();
    let filter = args.status.map(|status| format!("status={}", status.to_ascii_uppercase()));
    let query = [("perPage", "100")].into_iter().chain(filter.as_deref().map(|filter| ("filter", filter)));
    let (mut next, mut printed) = (Some(client.url(&["jobs", "actions"], query)), 0);
    while let Some(url) = next.filter(|_| printed < args.limit) {
        let (jobs, following): (Vec<Job>, _) = client.read_page(&url).await.map_err(failed)?;
        for job in jobs {
            if printed == args.limit || !say(&line(&job)) {
                return Ok(ExitCode::SUCCESS);
            }
            printed += 1;
        }
        next = following;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints how far a job is, and once it has ended the operations that failed.
pub(super) async fn status(args: Status) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?;
    let url = url(&client, &args.id)?;
    let mut job: Job = client.clone().brief().read(&url).await.map_err(failed)?;
    let unfinished = |error: RequestError| Failure::unfinished(&url, error);
    if args.follow && job.completed_at.is_none() {
        job = follow(&client, &url).await.map_err(unfinished)?;
    }
    if job.completed_at.is_some() {
        print_failures(&client, &url, args.show_failures).await.map_err(unfinished)?;
    }
    say(&line(&job));
    if let Some(message) = &job.message {
        note("jobs", message);
    }
    Ok(if job.completed_at.is_some() { code(&job.status) } else { ExitCode::SUCCESS })
}

/// Has a job cancelled.
pub(super) async fn cancel(args: Cancel) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?.brief();
    let mut url = url(&client, &args.id)?;
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push("cancel");
    }
    client.act(&url).await.map_err(failed)?;
    say(&format!("{} is being cancelled; what it created stays.", args.id));
    Ok(ExitCode::SUCCESS)
}

fn line(job: &Job) -> String {
    let (done, all) = (job.progress.amount_completed, job.progress.amount_requested);
    let made = jiff::Timestamp::from_millisecond(job.created_at);
    let made = made.map_or_else(|_| job.created_at.to_string(), |at| format!("{at:.0}"));
    format!("{}\t{made}\t{}\t{done} of {all}\t{} failed", job.id, job.status, job.failed_operations_amount)
}
