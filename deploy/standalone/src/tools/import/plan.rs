//! What an import has to do: its form, its place in the file, its earlier runs.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use super::{
    Args, MAX_CHUNK_ROWS,
    records::{Layout, Records},
    rows::Rows,
    state::{self, State, Subject, beside},
};
use crate::{
    config::ConfigError,
    failure::Failure,
    tools::{client::Client, export::Format},
};

/// What is to be done, from the file's content and what an earlier run left.
pub(super) struct Plan {
    pub(super) state: State,
    pub(super) state_path: Option<PathBuf>,
    pub(super) rejects_path: PathBuf,
    pub(super) layout: Layout,
    pub(super) size: Option<u64>,
    pub(super) rows: Rows,
    pub(super) input: Records<Box<dyn BufRead + Send>>,
}

impl Plan {
    /// Reads the file once for its hash, then what an earlier run left.
    pub(super) fn make(args: &Args, client: &Client) -> Result<Self, Failure> {
        let name = args.file.display();
        let bad = |error: io::Error| ConfigError::new("FILE", format!("{name} cannot be read: {error}"));
        let stdin = args.file.as_os_str() == "-";
        let ends = args.file.extension().and_then(|end| end.to_str());
        let layout = match (args.format, ends) {
            (Some(Format::Ndjson), _) | (None, Some("ndjson" | "jsonl")) => Layout::Ndjson,
            (Some(Format::Csv), _) | (None, _) => Layout::Csv,
        };
        let (format, ending) = match layout {
            Layout::Csv => ("csv", ".rejects.csv"),
            Layout::Ndjson => ("ndjson", ".rejects.ndjson"),
        };
        let (content, size) = if stdin {
            (String::new(), None)
        } else {
            let (content, size) = state::hash(&args.file).map_err(bad)?;
            (content, Some(size))
        };
        let subject = Subject {
            content,
            api: client.base().to_string(),
            domain: args.domain.clone(),
            platform_id: args.platform_id.clone(),
            format: format.to_owned(),
            chunk_rows: usize::from(args.chunk).min(MAX_CHUNK_ROWS),
        };
        let state_path = (!stdin).then(|| beside(&args.file, ".waymark-import.json"));
        let state = match &state_path {
            Some(path) => find_state(path, subject, args.restart)?,
            None => State::new(subject).map_err(|error| Failure::unfinished("the import", error))?,
        };
        let base = if stdin { Path::new("waymark-import") } else { &args.file };
        let rejects_path = args.rejects.clone().unwrap_or_else(|| beside(base, ending));
        let (rows, input) = open(args, layout, &state)?;
        Ok(Self { state, state_path, rejects_path, layout, size, rows, input })
    }
}

/// The state to go on from; the state of something else is not overwritten without being asked.
fn find_state(path: &Path, subject: Subject, restart: bool) -> Result<State, Failure> {
    let failed = |error: io::Error| Failure::unfinished(path.display(), error);
    let found = if restart { None } else { State::find(path).map_err(failed)? };
    match found {
        Some(state) if state.subject == subject => Ok(state),
        Some(state) if !state.done => {
            let reason = format!(
                "{} is of an import with other content or options that is not finished: finish it, or give \
                 --restart to import all lines",
                path.display()
            );
            Err(ConfigError::new("FILE", reason).into())
        }
        Some(_) | None => {
            let state = State::new(subject).map_err(failed)?;
            // Before the first request: its key must be the same after any stop.
            state.save(path).map_err(failed)?;
            Ok(state)
        }
    }
}

/// Opens the input behind what is settled; the header is read in any case.
fn open(
    args: &Args,
    layout: Layout,
    state: &State,
) -> Result<(Rows, Records<Box<dyn BufRead + Send>>), Failure> {
    let name = args.file.display();
    let bad = |error: io::Error| ConfigError::new("FILE", format!("{name} cannot be read: {error}"));
    let stdin = args.file.as_os_str() == "-";
    let source = || -> io::Result<Box<dyn BufRead + Send>> {
        if stdin { Ok(Box::new(BufReader::new(io::stdin()))) } else { Ok(Box::new(file(&args.file, 0)?)) }
    };
    let mut records = Records::new(source().map_err(bad)?, layout).map_err(bad)?;
    let rows = match layout {
        Layout::Ndjson => Rows::ndjson(args.platform_id.clone()),
        Layout::Csv => {
            let header = records.next().map_err(bad)?;
            Rows::csv(header, args.platform_id.clone())
                .map_err(|reason| ConfigError::new("FILE", format!("{name}: {reason}")))?
        }
    };
    if state.chunks > 0 {
        let input: Box<dyn BufRead + Send> = Box::new(file(&args.file, state.offset).map_err(bad)?);
        records = Records::at(input, layout, (state.offset, state.line));
    }
    Ok((rows, records))
}

fn file(path: &Path, offset: u64) -> io::Result<BufReader<File>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(BufReader::with_capacity(256 << 10, file))
}
