//! `waymark links`: changes many links at once, and undoes such a change.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Subcommand;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    client::{ApiArgs, Client, RequestError},
    shown::{note, say},
};
use crate::{config::ConfigError, failure::Failure};

/// Time between two looks at a change.
const LOOK: Duration = Duration::from_millis(300);

/// Time between two lines about how far it is.
const PERIOD: Duration = Duration::from_secs(5);

/// Exit code of a change that ran to its end and left links as they are.
const SOME_LEFT: u8 = 1;
/// Exit code of a change that failed, was cancelled or waits for an approval.
const NOT_DONE: u8 = 2;

/// What a change is called that waits for a second operator.
const AWAITING: &str = "awaitingApproval";

/// Arguments of `waymark links`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Change all links that meet the conditions; one condition is required.
    ///
    /// Prints the id of the change, by which it can be undone for 30 days. Exit codes: 0 accepted, or with --wait all links were
    /// changed; 1 nothing was asked for, or some links were left as they are; 2 the change failed, was cancelled, waits for an
    /// approval or could not be followed; 64 wrong arguments. Ctrl-C stops waiting; the change goes on.
    Change(Box<Change>),
    /// Give the links of a change back what they had. Exit codes are those of change.
    Undo(Undo),
}

#[derive(Debug, clap::Args)]
struct Change {
    #[command(flatten)]
    api: ApiArgs,
    /// Only links that meet a filter, as of the list of links, such as tags=summer
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Only links with these words
    #[arg(long, value_name = "WORDS")]
    q: Option<String>,
    /// Only links of this product and of its Thngs
    #[arg(long, value_name = "ID")]
    product: Option<String>,
    /// Only links of this resource
    #[arg(long, value_name = "ID")]
    platform_id: Option<String>,
    /// Only links that are scoped to this project
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Only links of this short domain
    #[arg(long, value_name = "HOST")]
    domain: Option<String>,
    /// What is changed, once for each member: target=URL, title=TEXT, endedUrl=URL, or a member with a value in JSON, such as
    /// validUntil=null or tags={"add":["autumn"]}
    #[arg(long = "set", value_name = "MEMBER=VALUE", required = true)]
    sets: Vec<String>,
    /// Refuse the change where another number of links is found
    #[arg(long, value_name = "N")]
    expect: Option<u64>,
    /// Say how many links there are and show the first ten before and after; change nothing
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    end: End,
}

#[derive(Debug, clap::Args)]
struct Undo {
    #[command(flatten)]
    api: ApiArgs,
    /// Id of the change
    #[arg(value_name = "ID")]
    id: String,
    /// Refuse the undo where any link was changed since
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    end: End,
}

#[derive(Debug, clap::Args)]
struct End {
    /// Wait for the end, and print the links that were left as they are
    #[arg(long)]
    wait: bool,
    /// Links that were left as they are to print at most
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    show_conflicts: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    id: String,
    status: String,
    #[serde(default)]
    completed_at: Option<i64>,
    progress: Progress,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Progress {
    links: u64,
    done: u64,
    changed: u64,
    unchanged: u64,
    conflicts: u64,
}

#[derive(Debug, Deserialize)]
struct DryRun {
    links: u64,
    sample: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
struct Sample {
    before: Link,
    #[serde(default)]
    after: Option<Link>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    short_domain: String,
    short_id: String,
    default_redirect_url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Conflict {
    short_domain: String,
    short_id: String,
    reason: String,
}

/// Runs the command.
///
/// # Errors
/// An argument cannot be used, or the service refuses or does not answer.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::Change(args) => change(*args).await,
        Command::Undo(args) => undo(args).await,
    }
}

fn failed(error: RequestError) -> Failure {
    Failure::failed("links", error)
}

async fn change(args: Change) -> Result<ExitCode, Failure> {
    let mut body = Map::new();
    for (name, value) in [
        ("filter", &args.filter),
        ("q", &args.q),
        ("product", &args.product),
        ("platformId", &args.platform_id),
        ("project", &args.project),
        ("domain", &args.domain),
    ] {
        if let Some(value) = value {
            body.insert(name.to_owned(), value.as_str().into());
        }
    }
    body.insert("patch".to_owned(), patch(&args.sets)?.into());
    if let Some(expect) = args.expect {
        body.insert("expect".to_owned(), expect.into());
    }
    let client = Client::new(&args.api)?;
    let url = client.url(&["jobs", "redirections"], []);
    if args.dry_run {
        body.insert("dryRun".to_owned(), true.into());
        let found: DryRun = post(&client.brief(), &url, body.into()).await?;
        say(&format!("{} links", found.links));
        for Sample { before, after, reason } in found.sample {
            let after = after.map(|link| link.default_redirect_url).or(reason).unwrap_or_default();
            let Link { short_domain, short_id, default_redirect_url } = before;
            say(&format!("{short_domain}/{short_id}\t{default_redirect_url}\t{after}"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let job: Job = post(&client, &url, body.into()).await?;
    end(&client, job, &args.end).await
}

async fn undo(args: Undo) -> Result<ExitCode, Failure> {
    if !shared::id::is_valid(&args.id) {
        return Err(ConfigError::new("ID", format!("{:?} is no id of a change", args.id)).into());
    }
    let client = Client::new(&args.api)?;
    let url = client.url(&["jobs", "redirections", &args.id, "undo"], []);
    let job: Job = post(&client, &url, json!({"strict": args.strict})).await?;
    end(&client, job, &args.end).await
}

async fn post<T: serde::de::DeserializeOwned>(client: &Client, url: &Url, body: Value) -> Result<T, Failure> {
    let bits = getrandom::u64().map_err(|error| Failure::failed("random bits", error))?;
    client.post_once(url, &format!("links-{bits:016x}"), body.to_string().into()).await.map_err(failed)
}

/// The members of `--set`.
fn patch(sets: &[String]) -> Result<Map<String, Value>, ConfigError> {
    let wrong = |reason: String| ConfigError::new("--set", reason);
    let mut patch = Map::new();
    for text in sets {
        let (name, value) =
            text.split_once('=').ok_or_else(|| wrong(format!("{text:?} is not MEMBER=VALUE")))?;
        let name = if name == "target" { "defaultRedirectUrl" } else { name };
        let is_text = match name {
            "defaultRedirectUrl" | "title" | "notes" => true,
            "endedUrl" | "status" => value != "null",
            _ => false,
        };
        // What is no JSON is sent as a text: the API knows the members, and what each may be.
        let json = (!is_text).then(|| serde_json::from_str(value).ok()).flatten();
        let value: Value = json.unwrap_or_else(|| value.into());
        if patch.insert(name.to_owned(), value).is_some() {
            return Err(wrong(format!("{name} is set twice")));
        }
    }
    Ok(patch)
}

/// Prints the id of a change that was accepted, or waits for its end and says what became of it.
async fn end(client: &Client, job: Job, end: &End) -> Result<ExitCode, Failure> {
    let id = job.id;
    if !end.wait {
        say(&id);
        return Ok(ExitCode::SUCCESS);
    }
    let url = client.url(&["jobs", "redirections", &id], []);
    let unfinished = |error: RequestError| Failure::unfinished(&url, error);
    let Job { status, progress, message, .. } = follow(client, &url).await.map_err(unfinished)?;
    print_conflicts(client, &url, end.show_conflicts).await.map_err(unfinished)?;
    let Progress { changed, unchanged, conflicts, .. } = progress;
    say(&format!(
        "{status}: {changed} changed, {unchanged} unchanged, {conflicts} left as they are, job {id}"
    ));
    if status == AWAITING {
        note("links", "another operator must approve it");
    }
    if let Some(message) = message {
        note("links", &message);
    }
    Ok(match (status.as_str(), conflicts) {
        ("complete", 0) => ExitCode::SUCCESS,
        ("complete", _) => ExitCode::from(SOME_LEFT),
        _ => ExitCode::from(NOT_DONE),
    })
}

/// Looks at a change until it has ended, or waits for an approval.
async fn follow(client: &Client, url: &Url) -> Result<Job, RequestError> {
    let mut said = Instant::now();
    loop {
        let job: Job = client.read(url).await?;
        if job.completed_at.is_some() || job.status == AWAITING {
            return Ok(job);
        }
        if said.elapsed() >= PERIOD {
            said = Instant::now();
            note("links", &format!("{} of {}, {}", job.progress.done, job.progress.links, job.status));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Prints the links that were left as they are, the oldest first.
async fn print_conflicts(client: &Client, job: &Url, most: u64) -> Result<(), RequestError> {
    let mut url = job.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push("conflicts");
    }
    url.query_pairs_mut().extend_pairs([("sortOrder", "ASCENDING"), ("perPage", "100")]);
    let (mut next, mut printed) = (Some(url), 0);
    while let Some(url) = next.filter(|_| printed < most) {
        let (conflicts, following): (Vec<Conflict>, _) = client.read_page(&url).await?;
        for Conflict { short_domain, short_id, reason } in conflicts {
            if printed == most || !say(&format!("{short_domain}/{short_id}\t{reason}")) {
                return Ok(());
            }
            printed += 1;
        }
        next = following;
    }
    Ok(())
}
