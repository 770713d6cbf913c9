//! What an import has to do: its form, its place in the file, its earlier runs.

use std::{
    fs::{File, TryLockError},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    time::Duration,
};

use flate2::bufread::MultiGzDecoder;
use shorteners::{Source, encoding};

use super::{
    Args, MAX_CHUNK_ROWS,
    foreign::Foreign,
    form::Form,
    known_rows::{self, KnownRows},
    progress::note,
    records::{Layout, Records},
    rows::{self, Rows},
    state::{self, State, Subject, beside},
};
use crate::{
    config::ConfigError,
    failure::Failure,
    tools::{client::Client, export::Format},
};

/// Time after which what an import sent before it was cut off is done or given up by the service.
const SETTLING: Duration = Duration::from_secs(5);

/// What is to be done, from the file's content and what an earlier run left.
pub(super) struct Plan {
    pub(super) state: State,
    /// Where the state is kept; stdin and dry runs have none.
    pub(super) state_path: Option<PathBuf>,
    /// The rows that earlier imports settled.
    pub(super) known: KnownRows,
    /// Where the rows of this import are noted; none for stdin and dry runs.
    pub(super) known_path: Option<PathBuf>,
    pub(super) rejects_path: PathBuf,
    pub(super) layout: Layout,
    pub(super) size: Option<u64>,
    pub(super) rows: Form,
    pub(super) input: Records<Box<dyn BufRead + Send>>,
    /// Whether no earlier run is gone on with.
    pub(super) is_new: bool,
    /// How long what an earlier run sent may still be under way.
    pub(super) settling: Duration,
    /// Keeps other imports of the file away.
    pub(super) lock: Option<File>,
}

impl Plan {
    /// Reads the file once for its hash, then what an earlier run left; writes nothing.
    pub(super) fn make(args: &Args, client: &Client) -> Result<Self, Failure> {
        let name = args.file.display();
        let bad = |error: io::Error| ConfigError::new("FILE", format!("{name} cannot be read: {error}"));
        let stdin = args.file.as_os_str() == "-";
        let lock = if stdin || args.dry_run { None } else { lock(&args.file).map_err(bad)? };
        if lock.is_none() && !stdin && !args.dry_run {
            return Err(Failure::Unfinished(format!("another import of {name} is running")));
        }
        let ends = args.file.extension().and_then(|end| end.to_str());
        let (is_json, format) = match (args.format, ends) {
            (Some(Format::Ndjson), _) | (None, Some("ndjson" | "jsonl")) => (true, "ndjson"),
            (Some(Format::Csv), _) | (None, _) => (false, "csv"),
        };
        let format = match args.from {
            None => format.to_owned(),
            Some(source) => {
                let project = args.project.as_deref().unwrap_or_default();
                format!("{} {:?} {project}", source.name(), args.on_conflict)
            }
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
            format,
            chunk_rows: usize::from(args.chunk).min(MAX_CHUNK_ROWS),
            again: args.again,
        };
        let base = if stdin { Path::new("waymark-import") } else { &args.file };
        let Opened { layout, rows, input } = match args.from {
            None => open(args, is_json)?,
            Some(source) => open_foreign(args, source)?,
        };
        let ending = match layout {
            Layout::Csv(_) => ".rejects.csv",
            Layout::Ndjson => ".rejects.ndjson",
        };
        let rejects_path = args.rejects.clone().unwrap_or_else(|| beside(base, ending));
        let state_path = (!stdin && !args.dry_run).then(|| beside(&args.file, ".waymark-import.json"));
        let (mut state, is_new, settling) = match &state_path {
            Some(path) => find_state(path, subject, args.restart)?,
            None => {
                let state = State::new(subject).map_err(|error| Failure::unfinished("the import", error))?;
                (state, true, Duration::ZERO)
            }
        };
        // Links of another shortener say themselves where they are from.
        let known_path = (!stdin && args.from.is_none()).then(|| args.file.with_file_name(known_rows::NAME));
        let known = match &known_path {
            Some(path) => {
                if is_new {
                    state.known_bytes = path.metadata().map_or(0, |file| file.len());
                }
                let size = if args.again { 0 } else { state.known_bytes };
                KnownRows::read(path, size).map_err(|error| Failure::unfinished(path.display(), error))?
            }
            None => KnownRows::default(),
        };
        let known_path = known_path.filter(|_| !args.dry_run);
        Ok(Self {
            state,
            state_path,
            known,
            known_path,
            rejects_path,
            layout,
            // What is read of the file of another shortener has another size.
            size: size.filter(|_| args.from.is_none()),
            rows,
            input,
            is_new,
            settling,
            lock,
        })
    }
}

/// Locks a file for this process; `None` where another one has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => {
            // Some file systems know no locks.
            note(&format!("{} cannot be locked: {error}", path.display()));
            Ok(Some(file))
        }
    }
}

/// The state to go on from, whether it is a new one, and how long requests of an import that is not gone on with may be under way.
fn find_state(path: &Path, subject: Subject, restart: bool) -> Result<(State, bool, Duration), Failure> {
    let failed = |error: io::Error| Failure::unfinished(path.display(), error);
    let found = match State::find(path) {
        Ok(found) => found,
        // It is rewritten.
        Err(_) if restart => None,
        Err(error) => return Err(failed(error)),
    };
    let settling = match found {
        Some(state) if state.subject == subject && !state.done && !restart => {
            return Ok((state, false, Duration::ZERO));
        }
        Some(state) if !state.done => {
            let written = path.metadata().and_then(|metadata| metadata.modified());
            let age = written.ok().and_then(|written| written.elapsed().ok()).unwrap_or_default();
            SETTLING.saturating_sub(age)
        }
        Some(_) | None => Duration::ZERO,
    };
    Ok((State::new(subject).map_err(failed)?, true, settling))
}

struct Opened {
    layout: Layout,
    rows: Form,
    input: Records<Box<dyn BufRead + Send>>,
}

/// Opens the input and reads the header.
fn open(args: &Args, is_json: bool) -> Result<Opened, Failure> {
    let name = args.file.display();
    let bad = |error: io::Error| ConfigError::new("FILE", format!("{name} cannot be read: {error}"));
    let mut source = encoding::decoded(source(args).map_err(bad)?).map_err(bad)?;
    let layout = if is_json {
        Layout::Ndjson
    } else {
        Layout::Csv(rows::delimiter(first_line(source.fill_buf().map_err(bad)?)))
    };
    let mut input = Records::new(source, layout).map_err(bad)?;
    let rows = match layout {
        Layout::Ndjson => Rows::ndjson(args.platform_id.clone()),
        Layout::Csv(delimiter) => {
            let header = input.next().map_err(bad)?;
            Rows::csv(header, delimiter, args.platform_id.clone())
                .map_err(|reason| ConfigError::new("FILE", format!("{name}: {reason}")))?
        }
    };
    Ok(Opened { layout, rows: Form::Own(rows), input })
}

/// The same for a file of another shortener, which may be packed by gzip; its form is known by its first character.
fn open_foreign(args: &Args, from: Source) -> Result<Opened, Failure> {
    let name = args.file.display();
    let bad = |error: io::Error| ConfigError::new("FILE", format!("{name} cannot be read: {error}"));
    let fault = |reason: String| ConfigError::new("FILE", format!("{name}: {reason}"));
    let unpacked = unpacked(source(args).map_err(bad)?).map_err(bad)?;
    let mut source = encoding::decoded(unpacked).map_err(bad)?;
    let start = source.fill_buf().map_err(bad)?;
    if shorteners::is_json(start) {
        let lines = shorteners::lines(from, source).map_err(|error| fault(error.to_string()))?;
        let (rows, text) = Foreign::json(from, lines);
        let text: Box<dyn BufRead + Send> = Box::new(io::Cursor::new(text));
        let input = Records::new(text, Layout::Ndjson).map_err(bad)?;
        return Ok(Opened { layout: Layout::Ndjson, rows: Form::Foreign(rows), input });
    }
    let delimiter = rows::delimiter_of(first_line(start), |name| from.knows(name));
    let layout = Layout::Csv(delimiter);
    let mut input = Records::new(source, layout).map_err(bad)?;
    let rows = Foreign::csv(from, input.next().map_err(bad)?, delimiter).map_err(fault)?;
    Ok(Opened { layout, rows: Form::Foreign(rows), input })
}

fn source(args: &Args) -> io::Result<Box<dyn BufRead + Send>> {
    Ok(if args.file.as_os_str() == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::with_capacity(256 << 10, File::open(&args.file)?))
    })
}

fn unpacked(mut input: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    if input.fill_buf()?.starts_with(&[0x1F, 0x8B]) {
        return Ok(Box::new(BufReader::with_capacity(256 << 10, MultiGzDecoder::new(input))));
    }
    Ok(input)
}

/// The first line of a text, over a byte order mark.
fn first_line(text: &[u8]) -> &[u8] {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
}
