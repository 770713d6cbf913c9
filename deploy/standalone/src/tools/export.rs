//! `waymark export`: every redirection of the account, page by page, to a file or a pipe.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::client::{ApiArgs, Client};
use crate::failure::Failure;

/// Form of a file of redirections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A header and one line a redirection.
    Csv,
    /// One JSON object a line.
    Ndjson,
}

/// Arguments of `waymark export`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    api: ApiArgs,
    /// Only redirections of this short domain
    #[arg(long, value_name = "HOST")]
    domain: Option<String>,
    /// Form of the output [default: by the file's ending, else csv]
    #[arg(long)]
    format: Option<Format>,
    /// Write to this file, whole or not at all [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The columns of the CSV; `waymark import` reads them back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    short_domain: String,
    short_id: String,
    #[serde(default)]
    r#type: String,
    platform_id: String,
    default_redirect_url: String,
    #[serde(default)]
    forward_query: bool,
    #[serde(default)]
    hits: i64,
    created_at: i64,
    updated_at: i64,
    #[serde(default)]
    short_url: String,
    // Behind the columns of older releases. Empty where the link has none.
    valid_from: Option<i64>,
    valid_until: Option<i64>,
    status: Option<String>,
    ended_url: Option<String>,
    status_code: Option<u16>,
    max_scans: Option<u32>,
}

enum Writer<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Ndjson(W),
}

impl<W: Write> Writer<W> {
    fn write(&mut self, record: &RawValue) -> io::Result<()> {
        match self {
            Self::Csv(out) => {
                let row: Row = serde_json::from_str(record.get())?;
                out.serialize(row).map_err(io_error)
            }
            Self::Ndjson(out) => {
                out.write_all(record.get().as_bytes())?;
                out.write_all(b"\n")
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Csv(out) => out.flush(),
            Self::Ndjson(out) => out.flush(),
        }
    }
}

/// Why an export ended early.
enum Stopped {
    /// The API did not answer.
    Input(Failure),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Input(failure) => failure,
            Stopped::Output(error) => Self::unfinished("the output", error),
        }
    }
}

/// What went wrong below the CSV: a closed pipe must be known as one.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

/// Runs the command.
///
/// # Errors
/// The API did not answer, or the output cannot be written.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?;
    let by_name =
        args.output.as_deref().and_then(|path| path.extension()).and_then(|end| match end.to_str() {
            Some("ndjson" | "jsonl") => Some(Format::Ndjson),
            _ => None,
        });
    let format = args.format.or(by_name).unwrap_or(Format::Csv);
    let Some(path) = args.output else {
        return match export(&client, args.domain.as_deref(), format, BufWriter::new(io::stdout())).await {
            // Whoever read has enough.
            Err(Stopped::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            ended => ended.map(|_| ExitCode::SUCCESS).map_err(Failure::from),
        };
    };
    let failed = |error: io::Error| Failure::unfinished(path.display(), error);
    let mut partial = path.clone().into_os_string();
    partial.push(".partial");
    let file = File::create(&partial).map_err(failed)?;
    let count = export(&client, args.domain.as_deref(), format, BufWriter::new(&file)).await?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&partial, &path).map_err(failed)?;
    let _ = writeln!(io::stdout().lock(), "{count} redirections are in {}", path.display());
    Ok(ExitCode::SUCCESS)
}

async fn export(
    client: &Client,
    domain: Option<&str>,
    format: Format,
    out: impl Write,
) -> Result<u64, Stopped> {
    let mut out = match format {
        Format::Csv => Writer::Csv(Box::new(csv::Writer::from_writer(out))),
        Format::Ndjson => Writer::Ndjson(out),
    };
    // Oldest first: what is created meanwhile comes at the end.
    let fixed = [("perPage", "100"), ("sortOrder", "ASCENDING")];
    let query = fixed.into_iter().chain(domain.map(|domain| ("domain", domain)));
    let mut next = Some(client.url(&["redirections"], query));
    let mut count = 0;
    while let Some(url) = next {
        let (page, following) = client.read_page::<Vec<Box<RawValue>>>(&url).await.map_err(|error| {
            Stopped::Input(Failure::unfinished(format!("after {count} redirections"), error))
        })?;
        for record in &page {
            out.write(record).map_err(Stopped::Output)?;
        }
        count += page.len() as u64;
        next = following;
    }
    out.flush().map_err(Stopped::Output)?;
    Ok(count)
}
