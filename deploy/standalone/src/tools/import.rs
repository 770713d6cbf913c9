//! `waymark import`: creates redirections from a file of any size, with flat memory, each line once.
//!
//! The file is read in chunks whose borders depend on its content alone. Each chunk is one bulk create
//! under an idempotency key of its own; several are under way at once, and they are settled in order: first
//! the rejects, then the state file. A run that was cut short thus sends some chunks again, and the service
//! answers them as it did before (for a day).

use std::{
    io::{self, BufRead, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use reqwest::Url;
use serde::Deserialize;
use tokio::sync::mpsc;

use self::{
    plan::Plan,
    progress::Progress,
    records::Records,
    rejects::{Reject, Rejects},
    rows::Rows,
    state::State,
};
use super::{
    client::{ApiArgs, Client, RequestError},
    export::Format,
};
use crate::failure::Failure;

mod plan;
mod progress;
mod records;
mod rejects;
mod rows;
mod state;

/// Bytes of a chunk's body past which no row is added: the API takes 1 MiB, and one row has up to 16 KiB.
const CHUNK_BYTES: usize = 512 << 10;

/// Most rows of a chunk: what one bulk request may hold.
const MAX_CHUNK_ROWS: usize = 1_000;

/// Least time between two writes of the state file.
const SAVE_INTERVAL: Duration = Duration::from_millis(250);

/// Arguments of `waymark import`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    api: ApiArgs,
    /// CSV with a header, or NDJSON; - reads stdin (an import from stdin cannot go on after a stop).
    ///
    /// Columns or members: platformId (or evrythngId) and defaultRedirectUrl; optionally shortId,
    /// forwardQuery, shortDomain, type. Others are ignored.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Form of the file [default: by its ending, else csv]
    #[arg(long)]
    format: Option<Format>,
    /// Short domain of the redirections [default: the account's first]
    #[arg(long, value_name = "HOST")]
    domain: Option<String>,
    /// Resource of the rows that name none
    #[arg(long, value_name = "ID")]
    platform_id: Option<String>,
    /// Requests under way at once, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
    /// Rows of a request, 1 to 1,000
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    chunk: u16,
    /// File of the rejected lines [default: FILE.rejects.csv or .ndjson]
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Forget how far an earlier run came, and import the whole file again
    #[arg(long)]
    restart: bool,
}

/// A run of rows, ready to be posted.
struct Chunk {
    index: u64,
    /// A JSON array; `None` when no row of the chunk could be read.
    body: Option<bytes::Bytes>,
    /// Line and record of each element.
    rows: Vec<(u64, Vec<u8>)>,
    /// Lines that could not be read.
    faults: Vec<Reject>,
    /// Place behind the chunk: bytes and lines.
    place: (u64, u64),
}

/// One result of a bulk create.
#[derive(Debug, Deserialize)]
struct ItemResult {
    status: u16,
    #[serde(default)]
    errors: Vec<String>,
}

/// Runs the command: 0 when every line is in, 1 when some were rejected, 2 when it is not finished.
///
/// # Errors
/// The file, the state or the API cannot be used.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?;
    let plan = Plan::make(&args, &client)?;
    if plan.state.done {
        let _ = writeln!(
            io::stdout().lock(),
            "{} was imported before: {} created, {} rejected; --restart imports it again.",
            args.file.display(),
            plan.state.created,
            plan.state.rejected
        );
        return Ok(code(&plan.state));
    }
    import(args, client, plan).await
}

async fn import(args: Args, client: Client, plan: Plan) -> Result<ExitCode, Failure> {
    let Plan { state: before, state_path, rejects_path, layout, size, rows, input } = plan;
    let broken = |what: &Path, error: io::Error| Failure::unfinished(what.display(), error);
    let mut rejects = Rejects::open(&rejects_path, layout, &rows, before.rejects_bytes)
        .map_err(|error| broken(&rejects_path, error))?;
    let progress = Progress::start(&before, size, &rows.ignored());
    let url = client.url(&["redirections"], args.domain.as_deref().map(|domain| ("domain", domain)));

    let (sender, chunks) = mpsc::channel(1);
    let (first, chunk_rows) = (before.chunks, before.subject.chunk_rows);
    let reader = tokio::task::spawn_blocking(move || read_chunks(input, &rows, first, chunk_rows, &sender));
    let posts = stream::unfold(chunks, async |mut chunks| Some((chunks.recv().await?, chunks)))
        .map(|chunk: Chunk| {
            let key = before.chunk_key(chunk.index);
            post(&client, &url, key, chunk)
        })
        .buffered(usize::from(args.parallel));
    let mut posts = std::pin::pin!(posts);

    let begun = Instant::now();
    let mut saved = Instant::now();
    let mut settled = before.clone();
    while let Some(answer) = posts.next().await {
        let (chunk, results) = answer.map_err(|error| {
            // What was settled since the last write is sent again, and answered as before.
            if let Some(path) = &state_path {
                let _ = settled.save(path);
            }
            Failure::unfinished(format!("line {}", settled.line + 1), error)
        })?;
        let found = rejected(&chunk, &results);
        rejects.write(&found).map_err(|error| broken(&rejects_path, error))?;
        settled.chunks = chunk.index + 1;
        (settled.offset, settled.line) = chunk.place;
        settled.rejected += found.len() as u64;
        settled.created += (chunk.rows.len() + chunk.faults.len() - found.len()) as u64;
        settled.rejects_bytes = rejects.size();
        if let Some(path) = state_path.as_ref().filter(|_| saved.elapsed() >= SAVE_INTERVAL) {
            settled.save(path).map_err(|error| broken(path, error))?;
            saved = Instant::now();
        }
        progress.show(&settled);
    }
    reader
        .await
        .map_err(|error| Failure::unfinished("the reader", error))?
        .map_err(|error| broken(&args.file, error))?;
    settled.done = true;
    if let Some(path) = &state_path {
        settled.save(path).map_err(|error| broken(path, error))?;
    }
    progress.end();
    summary(&before, &settled, begun.elapsed(), &rejects_path);
    Ok(code(&settled))
}

fn code(state: &State) -> ExitCode {
    ExitCode::from(u8::from(state.rejected > 0))
}

fn summary(before: &State, state: &State, took: Duration, rejects: &Path) {
    let rows = state.created + state.rejected - before.created - before.rejected;
    let mut text = format!("{} created, {} rejected", state.created, state.rejected);
    if state.rejected > 0 {
        text.push_str(&format!(" (see {})", rejects.display()));
    }
    if before.chunks > 0 {
        text.push_str(&format!("; {} of them by an earlier run", before.created + before.rejected));
    }
    let seconds = took.as_secs_f64();
    // A closed pipe is no fault.
    let _ = writeln!(
        io::stdout().lock(),
        "{text}; {rows} rows in {seconds:.1} s, {:.0} rows/s",
        rows as f64 / seconds.max(0.001)
    );
}

/// Cuts the input into chunks by count and size, which depend on the content alone.
fn read_chunks(
    mut input: Records<Box<dyn BufRead + Send>>,
    rows: &Rows,
    first: u64,
    chunk_rows: usize,
    chunks: &mpsc::Sender<Chunk>,
) -> io::Result<()> {
    for index in first.. {
        let mut chunk =
            Chunk { index, body: None, rows: Vec::new(), faults: Vec::new(), place: input.place() };
        let mut body = vec![b'['];
        while chunk.rows.len() + chunk.faults.len() < chunk_rows && body.len() < CHUNK_BYTES {
            let Some(record) = input.next()? else { break };
            let line = record.line;
            match record.content {
                Err(fault) => {
                    chunk.faults.push(Reject { line, reason: fault.reason, record: fault.start });
                }
                Ok(bytes) => {
                    let end = body.len();
                    if !chunk.rows.is_empty() {
                        body.push(b',');
                    }
                    match rows.write(&bytes, &mut body) {
                        Ok(()) => chunk.rows.push((line, bytes)),
                        Err(reason) => {
                            body.truncate(end);
                            chunk.faults.push(Reject { line, reason, record: bytes });
                        }
                    }
                }
            }
        }
        if chunk.rows.is_empty() && chunk.faults.is_empty() {
            return Ok(());
        }
        chunk.place = input.place();
        if !chunk.rows.is_empty() {
            body.push(b']');
            chunk.body = Some(body.into());
        }
        if chunks.blocking_send(chunk).is_err() {
            // The import failed; it says why.
            return Ok(());
        }
    }
    Ok(())
}

async fn post(
    client: &Client,
    url: &Url,
    key: String,
    mut chunk: Chunk,
) -> Result<(Chunk, Vec<ItemResult>), RequestError> {
    let results: Vec<ItemResult> = match chunk.body.take() {
        None => Vec::new(),
        Some(body) => client.post_once(url, &key, body).await?,
    };
    if results.len() != chunk.rows.len() {
        let text = format!("{} results came for {} rows", results.len(), chunk.rows.len());
        return Err(RequestError::Unreachable(text));
    }
    Ok((chunk, results))
}

/// The rejected lines of a chunk, in the file's order.
fn rejected(chunk: &Chunk, results: &[ItemResult]) -> Vec<Reject> {
    let refused = chunk.rows.iter().zip(results).filter(|(_, result)| result.status >= 300);
    let mut rejects: Vec<Reject> = refused
        .map(|((line, record), result)| Reject {
            line: *line,
            reason: result.errors.join(" "),
            record: record.clone(),
        })
        .collect();
    rejects.extend(chunk.faults.iter().map(|fault| Reject {
        line: fault.line,
        reason: fault.reason.clone(),
        record: fault.record.clone(),
    }));
    rejects.sort_by_key(|reject| reject.line);
    rejects
}
