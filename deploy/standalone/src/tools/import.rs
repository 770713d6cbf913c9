//! `waymark import`: creates redirections from a file of any size, each line once.
//!
//! The file is read in chunks whose borders depend on its content alone. Rows that are there are passed over
//! (see `existing`). The rest of a chunk is one bulk create under an idempotency key of its own; several are
//! under way at once, and they are settled in order: first the rejects and results, then the state file. A
//! run that was cut short thus sends some chunks again, and the service answers them as it did before (for a
//! day).

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use shorteners::Source;
use tokio::sync::mpsc;

use self::{
    chunks::{Outcome, Preparer, Settled, Step, post, read_chunks},
    existing::Existing,
    known_rows::RowLog,
    moving::{Moving, OnConflict, Seen},
    plan::Plan,
    progress::{Progress, note},
    rejects::Rejects,
    results::Results,
    state::State,
    things::Things,
};
use super::{
    client::{ApiArgs, Client, RequestError},
    export::Format,
};
use crate::failure::Failure;

mod chunks;
mod existing;
mod foreign;
mod form;
mod known_rows;
mod moving;
mod plan;
mod progress;
mod records;
mod rejects;
mod results;
mod rows;
mod state;
mod things;

/// Most rows of a chunk: what one bulk request may hold.
const MAX_CHUNK_ROWS: usize = 1_000;

/// Least time between two writes of the state file.
const SAVE_INTERVAL: Duration = Duration::from_millis(250);

/// Rejected lines that a dry run shows.
const SHOWN_REJECTS: usize = 20;

/// Arguments of `waymark import`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    api: ApiArgs,
    /// CSV with a header, or NDJSON; - reads stdin (an import from stdin cannot go on after a stop).
    ///
    /// Columns or members: platformId (or evrythngId) and defaultRedirectUrl (or target); optionally shortId,
    /// forwardQuery, statusCode, validFrom, validUntil, maxScans, status, endedUrl, shortDomain, type. In place of platformId a
    /// row may name a Thing, which is made when it is not there: gs1:21 (its serial), and optionally name and product
    /// (its id or an identifier such as gs1:01:09501101020917). Others are ignored. CSV is separated by commas,
    /// semicolons or tabs; text is UTF-8, or UTF-16 with a byte order mark.
    ///
    /// A row whose resource has a redirection from before to the same target, with the status code, the times and the
    /// ended page that the row names, is already there and makes none: a file that was put right can be imported again.
    /// So is a row that an earlier import from the file's folder settled, whatever became of its redirection since:
    /// `waymark-import.rows` beside the file holds those.
    ///
    /// With --from it is an export of another shortener, as CSV or JSON (up to 64 MiB), maybe packed by gzip. The number of a
    /// line is then that of the link, if it is JSON.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Import the links of another shortener under their codes; what differs of links that were imported before is changed
    #[arg(long, value_name = "SERVICE", conflicts_with_all = ["format", "again"])]
    from: Option<Source>,
    /// With --from: what to do with a link whose code another link has
    #[arg(long, value_name = "WHAT", default_value = "refuse", requires = "from")]
    on_conflict: OnConflict,
    /// With --from: scope what is made to this project
    #[arg(long, value_name = "ID", requires = "from")]
    project: Option<String>,
    /// Form of the file [default: by its ending, else csv]
    #[arg(long)]
    format: Option<Format>,
    /// Short domain of the redirections [default: the account's first]
    #[arg(long, value_name = "HOST")]
    domain: Option<String>,
    /// Resource of the rows that name none [default with --from: a product that is made once]
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
    /// Write each row's short id and short URL to this file: CSV, or NDJSON by its ending
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Change nothing; say how many rows would be created, are there, or would be rejected
    #[arg(long)]
    dry_run: bool,
    /// Create rows though they are there: a second code for each
    #[arg(long)]
    again: bool,
    /// Forget how far an earlier run came, and begin with the first line
    #[arg(long)]
    restart: bool,
}

/// Runs the command: 0 when every line is in, 1 when some were rejected, 2 when it is not finished.
///
/// # Errors
/// The file, the state or the API cannot be used.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?;
    let mut plan = Plan::make(&args, &client)?;
    let unfinished = |error: RequestError| Failure::unfinished("line 1", error);
    if !plan.settling.is_zero() {
        note("an earlier import of this file was cut off; waiting until what it sent is settled");
        tokio::time::sleep(plan.settling).await;
    }
    if plan.is_new && !args.again && args.from.is_none() {
        plan.state.until = existing::newest(&client).await.map_err(unfinished)?;
    }
    let domain = match &args.domain {
        Some(domain) => Some(domain.to_ascii_lowercase()),
        None => existing::first_domain(&client).await.map_err(unfinished)?,
    };
    let moving = match args.from {
        None => None,
        Some(source) => {
            let (client, domain, project) = (client.clone(), domain.clone(), args.project.clone());
            let (platform_id, on_conflict) = (args.platform_id.clone(), args.on_conflict);
            let dry_run = args.dry_run;
            let prefix = None;
            let mut moving =
                Moving { client, source, on_conflict, domain, prefix, project, platform_id, dry_run };
            moving.find_prefix().await.map_err(unfinished)?;
            moving.find_owner(&plan.state.run).await.map_err(unfinished)?;
            Some(Arc::new(moving))
        }
    };
    import(args, client, domain, moving, plan).await
}

async fn import(
    args: Args,
    client: Client,
    domain: Option<String>,
    moving: Option<Arc<Moving>>,
    plan: Plan,
) -> Result<ExitCode, Failure> {
    let progress = Progress::start(&plan.state, plan.size, &plan.rows.ignored());
    let mut files = Files::open(&args, &plan)?;
    let Plan { state: before, known, rows, input, is_new, lock, .. } = plan;
    // Before the first request: its key must be the same after any stop.
    files.save(&before)?;
    // Links of another shortener are looked for by their short ids: on the domain on which they are made.
    let named = if moving.is_some() { domain.as_deref() } else { args.domain.as_deref() };
    let query = [("domain", named), ("project", args.project.as_deref())];
    let query = query.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let url = client.url(&["redirections"], query);
    let (sender, chunks) = mpsc::channel(1);
    let chunk_rows = before.subject.chunk_rows;
    let reader = tokio::task::spawn_blocking(move || read_chunks(input, &rows, chunk_rows, &sender));
    let preparer = Preparer {
        client: client.clone(),
        existing: Existing::new(client.clone(), domain.clone(), before.until),
        known,
        things: Things::new(client.clone()),
        moving: moving.clone(),
        seen: Seen::default(),
        first: before.chunks,
        dry_run: args.dry_run,
    };
    // One after the other: which row an existing redirection stands for depends on those before it.
    let steps = stream::unfold((chunks, preparer), async |(mut chunks, mut preparer)| {
        let chunk = chunks.recv().await?;
        let key = before.chunk_key(chunk.index);
        let step = preparer.prepare(chunk, key).await;
        Some((step, (chunks, preparer)))
    });
    let posts = steps
        .map(async |step| match step? {
            Step::Done => Ok(None),
            Step::Post(chunk) => {
                post(&client, &url, domain.as_deref(), moving.as_deref(), *chunk).await.map(Some)
            }
        })
        .buffered(usize::from(args.parallel));
    let mut posts = std::pin::pin!(posts);

    let begun = Instant::now();
    let mut saved = Instant::now();
    let mut state = before.clone();
    while let Some(answer) = posts.next().await {
        let Some(settled) = answer.map_err(|error| files.give_up(&state, is_new, error))? else { continue };
        files.write(&settled, &mut state)?;
        if saved.elapsed() >= SAVE_INTERVAL {
            files.save(&state)?;
            saved = Instant::now();
        }
        progress.show(&state);
    }
    reader
        .await
        .map_err(|error| Failure::unfinished("the reader", error))?
        .map_err(|error| broken(&args.file, error))?;
    state.done = true;
    files.save(&state)?;
    drop(lock);
    progress.end();
    for (name, links) in &files.dropped {
        note(&format!("not taken over of {links} links: {name}"));
    }
    if args.dry_run {
        dry_summary(&state, files.new_rows);
    } else {
        summary(&before, &state, begun.elapsed(), &files.rejects_path, args.from.is_none());
    }
    Ok(ExitCode::from(u8::from(state.rejected > 0)))
}

fn broken(what: &Path, error: io::Error) -> Failure {
    Failure::unfinished(what.display(), error)
}

/// What an import writes.
struct Files {
    state_path: Option<PathBuf>,
    rejects_path: PathBuf,
    rejects: Option<Rejects>,
    results: Option<Results>,
    results_path: PathBuf,
    known: Option<RowLog>,
    dry_run: bool,
    /// Rejected lines that a dry run showed.
    shown: usize,
    /// Rows that a dry run would create.
    new_rows: u64,
    /// What links of another shortener have that is not taken over, and how many of them.
    dropped: BTreeMap<&'static str, u64>,
}

impl Files {
    /// Begins the files, or goes on where an earlier run stopped.
    fn open(args: &Args, plan: &Plan) -> Result<Self, Failure> {
        let (state, rejects_path) = (&plan.state, plan.rejects_path.clone());
        let writes_rejects = !args.dry_run || args.rejects.is_some();
        let rejects = writes_rejects
            .then(|| Rejects::open(&rejects_path, plan.layout, plan.rows.header(), state.rejects_bytes))
            .transpose()
            .map_err(|error| broken(&rejects_path, error))?;
        let results_path = args.results.clone().unwrap_or_default();
        let results = args.results.as_ref().map(|path| Results::open(path, state.results_bytes)).transpose();
        let results = results.map_err(|error| broken(&results_path, error))?;
        if results.is_some() && state.chunks > 0 && state.results_bytes == 0 {
            note(&format!(
                "{} has no results up to line {}; import the file once more to have them all",
                results_path.display(),
                state.line
            ));
        }
        Ok(Self {
            state_path: plan.state_path.clone(),
            rejects_path,
            rejects,
            results,
            results_path,
            known: plan.known_path.clone().map(RowLog::new),
            dry_run: args.dry_run,
            shown: 0,
            new_rows: 0,
            dropped: BTreeMap::new(),
        })
    }

    /// Writes what became of a chunk, then counts it.
    fn write(&mut self, settled: &Settled, state: &mut State) -> Result<(), Failure> {
        let found = settled.rejected();
        if let Some(rejects) = &mut self.rejects {
            rejects.write(&found).map_err(|error| broken(&self.rejects_path, error))?;
            state.rejects_bytes = rejects.size();
        }
        if self.dry_run {
            for reject in found.iter().take(SHOWN_REJECTS.saturating_sub(self.shown)) {
                note(&format!("line {}: {}", reject.line, reject.reason));
            }
            self.shown += found.len();
        }
        if let Some(results) = &mut self.results {
            results.write(settled).map_err(|error| broken(&self.results_path, error))?;
            state.results_bytes = results.size();
        }
        if let Some(known) = &mut self.known {
            known.write(settled).map_err(|error| broken(Path::new(known_rows::NAME), error))?;
        }
        state.chunks = settled.index + 1;
        (state.offset, state.line) = settled.place;
        state.rejected += found.len() as u64;
        state.created += settled.count(|outcome| matches!(outcome, Outcome::Created(_)));
        state.there += settled.count(|outcome| matches!(outcome, Outcome::There(_)));
        self.new_rows += settled.count(|outcome| matches!(outcome, Outcome::New));
        state.changed += settled.count(|outcome| matches!(outcome, Outcome::Changed(_)));
        state.skipped += settled.count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        for name in settled.rows.iter().flat_map(|(row, _)| &row.item.dropped) {
            *self.dropped.entry(*name).or_default() += 1;
        }
        state.things += settled.things;
        Ok(())
    }

    fn save(&self, state: &State) -> Result<(), Failure> {
        match &self.state_path {
            Some(path) => state.save(path).map_err(|error| broken(path, error)),
            None => Ok(()),
        }
    }

    /// Keeps what is settled; of an import that was refused before anything was, nothing is kept.
    fn give_up(&self, state: &State, is_new: bool, error: RequestError) -> Failure {
        if let Some(path) = &self.state_path {
            let was_refused = matches!(error, RequestError::Refused { .. });
            if was_refused && is_new && state.chunks == 0 {
                let _ = fs::remove_file(path);
            } else {
                // What was settled since the last write is sent again, and answered as before.
                let _ = state.save(path);
            }
        }
        Failure::unfinished(format!("line {}", state.line + 1), error)
    }
}

fn summary(before: &State, state: &State, took: Duration, rejects: &Path, can_repeat: bool) {
    let rows = state.rows() - before.rows();
    let mut text = state.counts();
    if state.rejected > 0 {
        text.push_str(&format!(" (see {})", rejects.display()));
    }
    if before.chunks > 0 {
        text.push_str(&format!("; {} of them by an earlier run", before.rows()));
    }
    if can_repeat && state.created == 0 && state.there > 0 {
        text.push_str("; --again creates them a second time");
    }
    let seconds = took.as_secs_f64();
    // A closed pipe is no fault.
    let _ = writeln!(
        io::stdout().lock(),
        "{text}; {rows} rows in {seconds:.1} s, {:.0} rows/s",
        rows as f64 / seconds.max(0.001)
    );
}

fn dry_summary(state: &State, new_rows: u64) {
    let hidden = state.rejected.saturating_sub(SHOWN_REJECTS as u64);
    if hidden > 0 {
        note(&format!("{hidden} more lines would be rejected"));
    }
    let mut text = format!("{new_rows} would be created, ");
    if state.changed > 0 {
        text.push_str(&format!("{} would be changed, ", state.changed));
    }
    if state.skipped > 0 {
        text.push_str(&format!("{} would be skipped, ", state.skipped));
    }
    let (there, rejected) = (state.there, state.rejected);
    // A closed pipe is no fault.
    let _ = writeln!(
        io::stdout().lock(),
        "{text}{there} are there, {rejected} would be rejected; nothing was changed"
    );
}
