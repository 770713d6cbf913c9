//! `waymark qr`: fetches the codes of short ids from the edge into files, and checks what came.
//!
//! What was fetched is listed beside the files (see `list`): a run that was cut off goes on from there.

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
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

use self::{
    list::{Entry, List},
    shown::Shown,
};
use super::{
    client::{self, ApiArgs, Client},
    patience::Patience,
};
use crate::{config::ConfigError, data_dir::write_atomic, failure::Failure};

mod list;
mod shown;

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
    /// Folder of the files, ID.FORMAT each, with %2F for a slash in ID; made when missing
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
    /// Side of one module (the X-dimension) for print, such as 0.5mm; without a unit in millimetres
    #[arg(long, value_name = "LENGTH", value_parser = millimetres)]
    x: Option<String>,
    /// Side of the whole image for print, such as 20mm, 2cm or 0.75in; without a unit in millimetres
    #[arg(long, value_name = "LENGTH", value_parser = millimetres)]
    size: Option<String>,
    /// Dots per inch of the printer, for print
    #[arg(long)]
    dpi: Option<String>,
    /// Fetch codes again whose files an earlier run wrote
    #[arg(long)]
    again: bool,
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
    patience: Patience,
}

/// What became of one short id.
enum Fetched {
    /// Its code was fetched now.
    Now(Entry),
    /// An earlier run fetched it.
    Before(Entry),
}

/// Runs the command: 0 when every code is there, 1 when some are not.
///
/// # Errors
/// A setting or the folder cannot be used.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let (total, ids) = (count(&args)?, ids(&args)?);
    let folder = args.out.clone();
    let failed = |error: io::Error| Failure::unfinished(folder.display(), error);
    let source = Arc::new(Source::new(args)?);
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut list = List::open(&folder).map_err(failed)?;
    let before = Arc::new(list.take_known());
    let parallel = usize::from(source.args.parallel);
    let fetches = ids.map(|id| {
        let (source, before) = (source.clone(), before.clone());
        async move {
            let id = id.map_err(|error| ("FILE".to_owned(), error.to_string()))?;
            if let Some(entry) = before.get(&id).filter(|entry| source.has(entry)) {
                return Ok(Fetched::Before(entry.clone()));
            }
            source.fetch(&id).await.map(Fetched::Now).map_err(|reason| (id, reason))
        }
    });
    let mut results = futures_util::stream::iter(fetches).buffered(parallel);
    let mut shown = Shown::start(total);
    while let Some(result) = results.next().await {
        match result {
            Ok(Fetched::Now(entry)) => {
                list.add(&entry).map_err(failed)?;
                shown.count(&entry, false);
            }
            Ok(Fetched::Before(entry)) => shown.count(&entry, true),
            Err((id, reason)) => shown.missing(&id, &reason),
        }
    }
    shown.end();
    // A closed pipe is no fault.
    let _ = writeln!(io::stdout().lock(), "{}", shown.summary(&folder));
    Ok(ExitCode::from(u8::from(shown.missing > 0)))
}

/// How many short ids there are, where that can be known: blank lines do not count.
fn count(args: &Args) -> Result<Option<u64>, Failure> {
    let listed = match &args.ids_file {
        None => 0,
        // What cannot be read twice is not counted.
        Some(path) if !path.is_file() => return Ok(None),
        Some(path) => {
            let file = File::open(path).map_err(|error| unreadable(path, &error))?;
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            lines.filter(|line| !line.trim().is_empty()).count()
        }
    };
    Ok(Some((listed + args.ids.len()) as u64))
}

fn unreadable(path: &Path, error: &io::Error) -> ConfigError {
    ConfigError::new("--ids-file", format!("{} cannot be read: {error}", path.display()))
}

/// A length as the edge takes it: decimal millimetres.
fn millimetres(text: &str) -> Result<String, String> {
    let number_of = |unit: &str| text.strip_suffix(unit).map(str::trim_end);
    let bad = || format!("{text:?} is not a length such as 20mm, 2cm or 0.75in");
    let in_unit = |number: &str, factor: f64| {
        let length: f64 = number.parse().map_err(|_| bad())?;
        let text = format!("{:.6}", length * factor);
        Ok(text.trim_end_matches('0').trim_end_matches('.').to_owned())
    };
    let number = match (number_of("mm"), number_of("cm"), number_of("in")) {
        (Some(number), ..) => number,
        (_, Some(number), _) => return in_unit(number, 10.0),
        (.., Some(number)) => return in_unit(number, 25.4),
        (None, None, None) => text,
    };
    // Which lengths there are is for the edge to say.
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number { Ok(number.to_owned()) } else { Err(bad()) }
}

/// The short ids of the arguments and of the file, read as they are needed.
fn ids(args: &Args) -> Result<impl Iterator<Item = io::Result<String>> + use<>, Failure> {
    let file: Box<dyn io::BufRead> = match &args.ids_file {
        None => Box::new(io::empty()),
        Some(path) if path.as_os_str() == "-" => Box::new(BufReader::new(io::stdin())),
        Some(path) => Box::new(BufReader::new(File::open(path).map_err(|error| unreadable(path, &error))?)),
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
        Ok(Self { args, api, edge, http, query, patience: Patience::long() })
    }

    /// Fetches one code into its file; the error is the reason why it is not there.
    async fn fetch(&self, id: &str) -> Result<Entry, String> {
        // The name of a file: nothing but a short id may become one.
        let id: ShortId = id.parse().map_err(|error| format!("{error}"))?;
        let url = self.url(&id).await?;
        let response =
            self.patience.send(|| self.http.get(url.clone())).await.map_err(|error| error.to_string())?;
        let headers = response.headers().clone();
        let header = |name: &str| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let etag = header(ETAG.as_str()).ok_or("the answer has no ETag")?;
        let length: Option<usize> = header(CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
        let expected = self.args.format.content_type();
        if !header(CONTENT_TYPE.as_str()).is_some_and(|found| found.starts_with(expected)) {
            return Err(format!("the answer is not {expected}"));
        }
        let bytes = response.bytes().await.map_err(|error| client::chain(&error))?;
        if bytes.is_empty() || length.is_some_and(|length| length != bytes.len()) {
            return Err(format!("{} bytes came of {length:?}", bytes.len()));
        }
        tracing::debug!(%id, etag, "fetched");
        let file = format!("{}.{}", id.as_segment(), self.args.format.ending());
        let path = self.args.out.join(&file);
        write_atomic(&path, &bytes, 0o644).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = |name| header(name).unwrap_or_default().to_owned();
        Ok(Entry {
            short_id: id.to_string(),
            file,
            bytes: bytes.len() as u64,
            version: text("x-qr-version"),
            modules: text("x-qr-modules"),
            ecl: text("x-qr-ecl"),
            x_dimension_mm: text("x-qr-x-dimension-mm"),
            development: header("x-waymark-development").is_some(),
            request: self.request(),
        })
    }

    /// What was asked for, but for the short id: a file of another request is fetched again.
    fn request(&self) -> String {
        let mut text = url::form_urlencoded::Serializer::new(String::new());
        text.append_pair("format", self.args.format.ending()).extend_pairs(&self.query);
        let from = self.edge.as_ref().or(self.api.as_ref().map(Client::base)).map(Url::as_str);
        text.append_pair("from", from.unwrap_or_default());
        text.append_pair("domain", self.args.domain.as_deref().unwrap_or_default()).finish()
    }

    /// Whether a file that an earlier run wrote is what this run would write.
    fn has(&self, entry: &Entry) -> bool {
        let size = || fs::metadata(self.args.out.join(&entry.file)).map(|file| file.len()).ok();
        !self.args.again && entry.request == self.request() && size() == Some(entry.bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_units() {
        for (text, expected) in [
            ("20mm", Some("20")),
            ("20 mm", Some("20")),
            ("0.381", Some("0.381")),
            ("2cm", Some("20")),
            ("0.75in", Some("19.05")),
            ("20px", None),
            ("mm", None),
            ("-1mm", None),
            ("", None),
        ] {
            assert_eq!(millimetres(text).ok().as_deref(), expected, "{text}");
        }
    }
}
