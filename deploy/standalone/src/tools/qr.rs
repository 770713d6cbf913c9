//! `waymark qr`: fetches the codes of short ids from the edge into files, and checks what came.

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use clap::ValueEnum;
use futures_util::StreamExt as _;
use reqwest::{
    Url,
    header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HOST, HeaderMap, HeaderValue},
};
use serde::Deserialize;
use shared::short_id::ShortId;

use super::client::{self, ApiArgs, Client};
use crate::{config::ConfigError, data_dir::write_atomic, failure::Failure};

/// Form of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Image {
    Png,
    Svg,
    Pdf,
    Eps,
}

impl Image {
    const fn ending(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Eps => "eps",
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Svg => "image/svg+xml",
            Self::Pdf => "application/pdf",
            Self::Eps => "application/postscript",
        }
    }
}

/// Arguments of `waymark qr`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Short ids
    #[arg(value_name = "ID", required_unless_present = "ids_file")]
    ids: Vec<String>,
    /// File with a short id on each line; - reads stdin
    #[arg(long, value_name = "FILE")]
    ids_file: Option<PathBuf>,
    /// Form of the files
    #[arg(long, default_value = "png")]
    format: Image,
    /// Folder of the files, ID.FORMAT each; made when missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Base of the edge, such as `https://tn.gg` [default: asked of the API for each short id]
    #[arg(long, value_name = "URL")]
    edge: Option<String>,
    /// Short domain, where it is not the account's first or not the host of --edge
    #[arg(long, value_name = "HOST")]
    domain: Option<String>,
    /// Requests under way at once, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
    /// Width in pixels
    #[arg(long)]
    w: Option<String>,
    /// Height in pixels
    #[arg(long)]
    h: Option<String>,
    /// Template, such as default-shortid
    #[arg(long)]
    tpl: Option<String>,
    /// Error correction: L, M, Q or H
    #[arg(long)]
    ecl: Option<String>,
    /// Side of one module in millimetres, for print
    #[arg(long)]
    x: Option<String>,
    /// Side of the whole image with a unit, such as 20mm, for print
    #[arg(long)]
    size: Option<String>,
    /// Dots per inch of the printer, for print
    #[arg(long)]
    dpi: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

/// Where codes come from.
struct Source {
    args: Args,
    api: Option<Client>,
    edge: Option<Url>,
    http: reqwest::Client,
    query: Vec<(&'static str, String)>,
}

/// Runs the command: 0 when every code is there, 1 when some are not.
///
/// # Errors
/// A setting or the folder cannot be used.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let ids = ids(&args)?;
    let failed = |error: io::Error| Failure::unfinished(args.out.display(), error);
    fs::create_dir_all(&args.out).map_err(failed)?;
    let source = Arc::new(Source::new(args)?);
    let parallel = usize::from(source.args.parallel);
    let fetches = ids.map(|id| {
        let source = source.clone();
        async move {
            let id = id.map_err(|error| ("FILE".to_owned(), error.to_string()))?;
            source.fetch(&id).await.map_err(|reason| (id, reason))
        }
    });
    let mut results = futures_util::stream::iter(fetches).buffered(parallel);
    let (mut written, mut missing) = (0u64, 0u64);
    while let Some(result) = results.next().await {
        match result {
            Ok(()) => written += 1,
            Err((id, reason)) => {
                missing += 1;
                // A closed pipe is no fault.
                let _ = writeln!(io::stderr().lock(), "qr: {id}: {reason}");
            }
        }
    }
    let _ =
        writeln!(io::stdout().lock(), "{written} files in {}, {missing} missing", source.args.out.display());
    Ok(ExitCode::from(u8::from(missing > 0)))
}

/// The short ids of the arguments and of the file, read as they are needed.
fn ids(args: &Args) -> Result<impl Iterator<Item = io::Result<String>> + use<>, Failure> {
    let file: Box<dyn io::BufRead> = match &args.ids_file {
        None => Box::new(io::empty()),
        Some(path) if path.as_os_str() == "-" => Box::new(BufReader::new(io::stdin())),
        Some(path) => Box::new(BufReader::new(File::open(path).map_err(|error| {
            ConfigError::new("--ids-file", format!("{} cannot be read: {error}", path.display()))
        })?)),
    };
    let lines = file.lines().map(|line| line.map(|line| line.trim().to_owned()));
    let lines = lines.filter(|line| line.as_ref().map_or(true, |line| !line.is_empty()));
    Ok(args.ids.clone().into_iter().map(Ok).chain(lines))
}

impl Source {
    fn new(args: Args) -> Result<Self, Failure> {
        let edge = args.edge.as_deref().map(|url| client::base_url("--edge", url)).transpose()?;
        let api = if edge.is_some() { None } else { Some(Client::new(&args.api)?) };
        let mut headers = HeaderMap::new();
        if let (Some(domain), Some(_)) = (&args.domain, &edge) {
            let host = HeaderValue::from_str(domain)
                .map_err(|_| ConfigError::new("--domain", format!("{domain:?} is not a host")))?;
            headers.insert(HOST, host);
        }
        let base = edge.as_ref().or(api.as_ref().map(Client::base));
        let base = base.ok_or_else(|| ConfigError::new("--edge", "give the base of the edge"))?;
        let http = client::http_client(base, args.api.ca.as_deref(), &headers)?;
        let query = [
            ("w", &args.w),
            ("h", &args.h),
            ("tpl", &args.tpl),
            ("ecl", &args.ecl),
            ("x", &args.x),
            ("size", &args.size),
            ("dpi", &args.dpi),
        ];
        let query = query.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
        Ok(Self { args, api, edge, http, query })
    }

    /// Fetches one code into its file; the error is the reason why it is not there.
    async fn fetch(&self, id: &str) -> Result<(), String> {
        // The name of a file: nothing but a short id may become one.
        let id: ShortId = id.parse().map_err(|error| format!("{error}"))?;
        let url = self.url(&id).await?;
        let response =
            client::patient(|| self.http.get(url.clone())).await.map_err(|error| error.to_string())?;
        let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let etag = header(ETAG).map(str::to_owned).ok_or("the answer has no ETag")?;
        let length: Option<usize> = header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let expected = self.args.format.content_type();
        if !header(CONTENT_TYPE).is_some_and(|found| found.starts_with(expected)) {
            return Err(format!("the answer is not {expected}"));
        }
        let bytes = response.bytes().await.map_err(|error| client::chain(&error))?;
        if bytes.is_empty() || length.is_some_and(|length| length != bytes.len()) {
            return Err(format!("{} bytes came of {length:?}", bytes.len()));
        }
        tracing::debug!(%id, etag, "fetched");
        let path = self.args.out.join(format!("{id}.{}", self.args.format.ending()));
        write_atomic(&path, &bytes, 0o644).map_err(|error| format!("{}: {error}", path.display()))
    }

    async fn url(&self, id: &ShortId) -> Result<Url, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Record {
            short_url: String,
        }
        let ending = self.args.format.ending();
        let mut url = match (&self.edge, &self.api) {
            (Some(edge), _) => {
                let mut url = edge.clone();
                url.set_path(&format!("/{id}.{ending}"));
                url
            }
            (None, Some(api)) => {
                let domain = self.args.domain.as_deref().map(|domain| ("domain", domain));
                let record: Record = api
                    .read(&api.url(&["redirections", id.as_str()], domain))
                    .await
                    .map_err(|error| error.to_string())?;
                Url::parse(&format!("{}.{ending}", record.short_url)).map_err(|error| error.to_string())?
            }
            (None, None) => return Err("there is neither an edge nor an API".to_owned()),
        };
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        Ok(url)
    }
}
