//! `waymark print`: orders many codes as one file, follows the order to its end and downloads its files. Run again with the
//! id of the order it goes on where it was.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    client::{ApiArgs, Client, RequestError},
    shown::{bar, end, note, say},
};
use crate::{config::ConfigError, failure::Failure};

mod reprint;
mod request;

/// Time between two looks at an order.
const LOOK: Duration = Duration::from_millis(500);

/// Time between two plain lines, where there is no terminal.
const PERIOD: Duration = Duration::from_secs(5);

/// Exit code of an order that failed or was cancelled.
const NOT_DONE: u8 = 2;

/// Arguments of `waymark print`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    api: ApiArgs,
    /// The order as a JSON file, as POST /jobs/qr takes it [default: what the flags say]
    #[arg(value_name = "FILE", conflicts_with = "order")]
    file: Option<PathBuf>,
    /// Wait for this order, which was made before, and download its files
    #[arg(long, value_name = "ID")]
    order: Option<String>,
    #[command(flatten)]
    again: reprint::Again,
    #[command(flatten)]
    wanted: request::Wanted,
    /// Folder for the files; it is made
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Print the order's id and leave
    #[arg(long)]
    no_wait: bool,
}

#[derive(Debug, Deserialize)]
struct Order {
    id: String,
    status: String,
    progress: Progress,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    edges: Option<Edges>,
}

#[derive(Debug, Deserialize)]
struct Progress {
    percentage: f64,
    codes: u64,
    made: u64,
    rendered: u64,
}

#[derive(Debug, Deserialize)]
struct Edges {
    lagging: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct File {
    name: String,
    etag: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Uploaded {
    id: String,
    upload_url: Option<String>,
    content_url: String,
}

impl Order {
    fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "complete" | "failed" | "cancelled")
    }
}

/// Runs the command.
///
/// # Errors
/// An argument cannot be used, or the service refuses or does not answer.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?;
    let id = match (&args.order, args.again.order()) {
        (Some(id), _) if args.wanted.is_empty() => id.clone(),
        (Some(_), _) => {
            let reason = "it names an order that was made; leave the flags of a new one out";
            return Err(ConfigError::new("--order", reason).into());
        }
        (None, Some(of)) if args.wanted.is_name() => {
            let body = args.again.body(args.wanted.name())?;
            let url = client.url(&["jobs", "qr", of, "reprint"], []);
            post(&client, &url, &key()?, &body).await?
        }
        (None, Some(_)) => {
            let reason = "codes are printed as they were; leave the flags of a new order out, but --name";
            return Err(ConfigError::new("--reprint", reason).into());
        }
        (None, None) => create(&client, &args).await?,
    };
    if args.no_wait {
        say(&id);
        return Ok(ExitCode::SUCCESS);
    }
    if args.order.is_none() {
        note("print", &format!("order {id}"));
    }
    let url = client.url(&["jobs", "qr", &id], []);
    let unfinished = |error: RequestError| Failure::unfinished(format!("order {id}"), error);
    let ended = follow(&client, &url).await.map_err(unfinished)?;
    if ended.status != "complete" {
        note("print", &format!("order {}: {}", ended.id, ended.message.as_deref().unwrap_or(&ended.status)));
        return Ok(ExitCode::from(NOT_DONE));
    }
    if let Some(edges) = ended.edges.filter(|edges| !edges.lagging.is_empty()) {
        note(
            "print",
            &format!("these edges did not hold the links when it was released: {}", edges.lagging.join(", ")),
        );
    }
    fs::create_dir_all(&args.out)
        .map_err(|error| ConfigError::new("--out", format!("{}: {error}", args.out.display())))?;
    let files: Vec<File> =
        client.read(&client.url(&["jobs", "qr", &id, "files"], [])).await.map_err(unfinished)?;
    if files.is_empty() {
        note("print", "its files were removed: their time is over");
        return Ok(ExitCode::from(NOT_DONE));
    }
    for File { name, etag } in files {
        // The service's own names: none leads out of the folder.
        let to = args.out.join(PathBuf::from(&name).file_name().unwrap_or_default());
        let url = client.url(&["jobs", "qr", &id, "files", &name], []);
        let bytes = client.download(&url, &to, &etag).await.map_err(unfinished)?;
        say(&format!("{}\t{bytes}", to.display()));
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(client: &Client, args: &Args) -> Result<String, Failure> {
    let key = key()?;
    let url = client.url(&["jobs", "qr"], []);
    let body = match &args.file {
        Some(_) if !args.wanted.is_empty() => {
            let reason = "it says everything; leave the flags of an order out";
            return Err(ConfigError::new("FILE", reason).into());
        }
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|error| ConfigError::new("FILE", format!("{}: {error}", path.display())))?;
            serde_json::from_str(&text).map_err(|error| {
                ConfigError::new("FILE", format!("{} is no JSON: {error}", path.display()))
            })?
        }
        None => {
            // Before anything is uploaded.
            let body = args.wanted.body("")?;
            let Some(path) = args.wanted.codes_file() else {
                return post(client, &url, &key, &body).await;
            };
            let file = create_file(client, path, &key).await?;
            let posted = order_file(client, args, (path, &file), (&url, key.as_str())).await;
            // The order still reads it; nothing else does.
            if let Err(error) = client.remove(&client.url(&["files", &file.id], [])).await {
                note("print", &format!("the uploaded file {} stays: {error}", file.id));
            }
            return posted;
        }
    };
    post(client, &url, &key, &body).await
}

/// Uploads a file of codes, and orders them.
async fn order_file(
    client: &Client,
    args: &Args,
    (path, file): (&Path, &Uploaded),
    (url, key): (&Url, &str),
) -> Result<String, Failure> {
    let upload_url = file.upload_url.as_deref();
    let upload_url =
        upload_url.ok_or_else(|| Failure::Failed("print: the key may not upload files".to_owned()))?;
    client.upload(upload_url, path).await?;
    post(client, url, key, &args.wanted.body(&file.content_url)?).await
}

/// Creates the record of a file of codes.
async fn create_file(client: &Client, path: &Path, key: &str) -> Result<Uploaded, Failure> {
    let name = path.file_name().map_or_else(|| "codes".into(), |name| name.to_string_lossy());
    let body = json!({"name": name.chars().take(256).collect::<String>(), "privateAccess": true});
    let url = client.url(&["files"], []);
    client
        .post_once(&url, &format!("{key}-file"), body.to_string().into())
        .await
        .map_err(|error| Failure::failed("print", error))
}

/// A key by which a request is carried out once.
fn key() -> Result<String, Failure> {
    let bits = getrandom::u64().map_err(|error| Failure::failed("random bits", error))?;
    Ok(format!("print-{bits:016x}"))
}

/// Asks for an order; gives its id.
async fn post(client: &Client, url: &Url, key: &str, body: &Value) -> Result<String, Failure> {
    let order: Order = client
        .post_once(url, key, body.to_string().into())
        .await
        .map_err(|error| Failure::failed("print", error))?;
    Ok(order.id)
}

/// Looks at an order until it has ended, and shows how far it is.
async fn follow(client: &Client, url: &Url) -> Result<Order, RequestError> {
    let bar = bar(Some(100), "{bar:30} {percent}% {msg}");
    let mut said = Instant::now();
    loop {
        let order: Order = client.read(url).await?;
        let Progress { percentage, codes, made, rendered } = &order.progress;
        let text = format!("{}: {made} made, {rendered} drawn, of {codes}", order.status);
        if let Some(bar) = &bar {
            // From 0 to 100.
            bar.set_position(*percentage as u64);
            bar.set_message(text);
        } else if said.elapsed() >= PERIOD {
            said = Instant::now();
            note("print", &text);
        }
        if order.has_ended() {
            end(bar.as_ref());
            return Ok(order);
        }
        tokio::time::sleep(LOOK).await;
    }
}
