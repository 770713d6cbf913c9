//! From the file to requests: rows are cut into chunks, compared with what is there, and the rest is posted.

use std::{
    collections::HashSet,
    io::{self, BufRead},
    sync::Arc,
};

use redirects::domain::redirection::Draft;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::{
    existing::{Code, Existing, missing, same},
    form::Form,
    known_rows::{KnownRows, RowKey},
    moving::{Moving, Seen},
    records::Records,
    rejects::Reject,
    rows::Item,
    things::{Thing, Things},
};
use crate::tools::client::{Client, RequestError};

/// Bytes of a chunk's body past which no row is added: the API takes 1 MiB, and one row has up to 16 KiB.
const CHUNK_BYTES: usize = 512 << 10;

/// A row that could be read.
pub(super) struct Row {
    /// Its line, counted from 1.
    pub(super) line: u64,
    /// The record as it stands in the file.
    pub(super) record: Vec<u8>,
    /// What it asks for.
    pub(super) item: Item,
    /// Under what its code is to be noted, unless it is noted already.
    pub(super) key: Option<RowKey>,
}

/// A run of rows.
pub(super) struct Chunk {
    pub(super) index: u64,
    rows: Vec<Row>,
    /// Lines that could not be read.
    faults: Vec<Reject>,
    /// Place behind the chunk: bytes and lines.
    place: (u64, u64),
}

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its redirection was created.
    Created(Code),
    /// It had been created before.
    There(Code),
    /// It is there, and was other than the row; it is not any more.
    Changed(Code),
    /// Its short id is that of another link, which stays.
    Skipped(String),
    /// It would be created.
    New,
    /// It was refused, and why.
    Refused(String),
}

/// A chunk, compared with what is there.
struct Prepared {
    chunk: Chunk,
    /// Of each row: what became of it, or nothing where it is in the body.
    outcomes: Vec<Option<Outcome>>,
    /// What the rows ask for, where it could be understood.
    drafts: Vec<Option<Draft>>,
    body: Option<bytes::Bytes>,
    things: u64,
}

/// A chunk that is done.
pub(super) struct Settled {
    pub(super) index: u64,
    /// The rows that could be read, and what became of each.
    pub(super) rows: Vec<(Row, Outcome)>,
    /// The lines that could not be read.
    pub(super) faults: Vec<Reject>,
    /// Place behind the chunk: bytes and lines.
    pub(super) place: (u64, u64),
    /// Things that were made for it.
    pub(super) things: u64,
}

/// One result of a bulk create.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemResult {
    status: u16,
    #[serde(default)]
    short_id: String,
    #[serde(default)]
    short_url: String,
    #[serde(default)]
    errors: Vec<String>,
}

/// Cuts the input into chunks by count and size, which depend on the content alone.
pub(super) fn read_chunks(
    mut input: Records<Box<dyn BufRead + Send>>,
    rows: &Form,
    chunk_rows: usize,
    chunks: &mpsc::Sender<Chunk>,
) -> io::Result<()> {
    for index in 0.. {
        let mut chunk = Chunk { index, rows: Vec::new(), faults: Vec::new(), place: input.place() };
        let mut size = 0;
        while chunk.rows.len() + chunk.faults.len() < chunk_rows && size < CHUNK_BYTES {
            let Some(record) = input.next()? else { break };
            let line = record.line;
            match record.content {
                Err(fault) => chunk.faults.push(Reject { line, reason: fault.reason, record: fault.start }),
                Ok(record) => match rows.parse(&record) {
                    Ok(item) => {
                        size += item.size();
                        chunk.rows.push(Row { line, record, item, key: None });
                    }
                    Err(reason) => chunk.faults.push(Reject { line, reason, record }),
                },
            }
        }
        if chunk.rows.is_empty() && chunk.faults.is_empty() {
            return Ok(());
        }
        chunk.place = input.place();
        if chunks.blocking_send(chunk).is_err() {
            // The import failed; it says why.
            return Ok(());
        }
    }
    Ok(())
}

/// Compares chunks with what is there, one after the other.
pub(super) struct Preparer {
    pub(super) client: Client,
    pub(super) existing: Existing,
    pub(super) known: KnownRows,
    pub(super) things: Things,
    /// How links of another shortener are compared with what is there.
    pub(super) moving: Option<Arc<Moving>>,
    /// The links of the file up to here.
    pub(super) seen: Seen,
    /// Chunks before this one are done by an earlier run.
    pub(super) first: u64,
    pub(super) dry_run: bool,
}

/// What is to be done with a chunk.
pub(super) enum Step {
    /// An earlier run did it.
    Done,
    /// It is to be posted.
    Post(Box<Post>),
}

/// A chunk that is to be posted, or has nothing to post.
pub(super) struct Post {
    prepared: Prepared,
    key: String,
    dry_run: bool,
}

impl Preparer {
    /// Finds out which rows of the next chunk are there, and makes their Things; `key` is the chunk's.
    pub(super) async fn prepare(&mut self, mut chunk: Chunk, key: String) -> Result<Step, RequestError> {
        let is_done = chunk.index < self.first;
        if let Some(moving) = self.moving.clone() {
            return self.prepare_links(&moving, chunk, key).await;
        }
        let named: Vec<_> = chunk.rows.iter().map(|row| row.item.thing.clone()).collect();
        let creates = !is_done && !self.dry_run;
        let resolved = self.things.resolve(&named, creates.then_some(&format!("{key}-thng"))).await?;
        let mut outcomes: Vec<Option<Outcome>> = vec![None; chunk.rows.len()];
        let mut made = HashSet::new();
        for ((row, thing), outcome) in chunk.rows.iter_mut().zip(resolved).zip(&mut outcomes) {
            let id = match thing {
                None => continue,
                Some(Thing::Missing) => {
                    *outcome = Some(Outcome::New);
                    continue;
                }
                Some(Thing::Refused(reason)) => {
                    *outcome = Some(Outcome::Refused(reason));
                    continue;
                }
                Some(Thing::There(id)) => id,
                Some(Thing::Made(id)) => {
                    let domain = row.item.body.get("shortDomain").and_then(Value::as_str);
                    self.existing.is_new(domain.map(str::to_ascii_lowercase).as_deref(), &id);
                    made.insert(id.clone());
                    id
                }
            };
            row.item.body.insert("platformId".to_owned(), id.into());
        }
        let parsed: Vec<_> =
            chunk.rows.iter().map(|row| Draft::parse(&Value::Object(row.item.body.clone()), None)).collect();
        if self.dry_run {
            self.refuse(&parsed, &mut outcomes).await?;
        }
        let drafts: Vec<Option<Draft>> = parsed.into_iter().map(Result::ok).collect();
        self.existing.load(&drafts).await?;
        let mut body = vec![b'['];
        for ((row, draft), outcome) in chunk.rows.iter_mut().zip(&drafts).zip(&mut outcomes) {
            if outcome.is_some() {
                continue;
            }
            if let Some(draft) = draft {
                let key = self.known.key(draft, self.existing.domain_of(draft));
                if let Some(code) = self.known.take(key) {
                    self.existing.remove(draft, &code);
                    *outcome = Some(Outcome::There(code));
                    continue;
                }
                row.key = Some(key);
                if let Some(code) = self.existing.take(draft) {
                    self.known.took(&code);
                    *outcome = Some(Outcome::There(code));
                    continue;
                }
            }
            if body.len() > 1 {
                body.push(b',');
            }
            serde_json::to_writer(&mut body, &row.item.body)
                .map_err(|error| RequestError::Unreachable(error.to_string()))?;
        }
        if is_done {
            return Ok(Step::Done);
        }
        let has_rows = body.len() > 1;
        body.push(b']');
        let body = has_rows.then(|| body.into());
        let prepared = Prepared { chunk, outcomes, drafts, body, things: made.len() as u64 };
        Ok(Step::Post(Box::new(Post { prepared, key, dry_run: self.dry_run })))
    }

    /// The same for links of another shortener: most are new, so the service says which short ids are taken.
    async fn prepare_links(
        &mut self,
        moving: &Moving,
        mut chunk: Chunk,
        key: String,
    ) -> Result<Step, RequestError> {
        let is_done = chunk.index < self.first;
        let mut outcomes = Vec::with_capacity(chunk.rows.len());
        for row in &mut chunk.rows {
            // First, because with a prefix and without it a code is one short id.
            moving.assign(&mut row.item.body);
            let twin = self.seen.note(row);
            if is_done {
                continue;
            }
            outcomes.push(match twin {
                Some(twin) => Some(moving.settle_twin(row, twin, &key).await?),
                None => None,
            });
        }
        if is_done {
            return Ok(Step::Done);
        }
        let waiting = chunk.rows.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_none());
        let waiting: Vec<&Map<String, Value>> = waiting.map(|(row, _)| &row.item.body).collect();
        let body = match waiting.as_slice() {
            [] => None,
            waiting => Some(
                serde_json::to_vec(waiting)
                    .map_err(|error| RequestError::Unreachable(error.to_string()))?
                    .into(),
            ),
        };
        let drafts = vec![None; chunk.rows.len()];
        let prepared = Prepared { chunk, outcomes, drafts, body, things: 0 };
        Ok(Step::Post(Box::new(Post { prepared, key, dry_run: self.dry_run })))
    }

    /// What a dry run can tell of rows that would be refused.
    async fn refuse(
        &self,
        parsed: &[Result<Draft, Vec<String>>],
        outcomes: &mut [Option<Outcome>],
    ) -> Result<(), RequestError> {
        let open = |outcome: &Option<Outcome>| outcome.is_none();
        let ids = parsed.iter().zip(&*outcomes).filter(|(_, outcome)| open(outcome));
        let ids = ids.filter_map(|(draft, _)| Some(draft.as_ref().ok()?.platform_id.to_string())).collect();
        let missing = missing(&self.client, ids).await?;
        for (draft, outcome) in parsed.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_none()) {
            *outcome = match draft {
                Err(faults) => Some(Outcome::Refused(faults.join(" "))),
                Ok(draft) if missing.contains(draft.platform_id.as_str()) => {
                    Some(Outcome::Refused(format!("platformId {} names nothing.", draft.platform_id)))
                }
                Ok(_) => None,
            };
        }
        Ok(())
    }
}

/// Posts what of a chunk is not there, and looks at rows whose short id is taken.
pub(super) async fn post(
    client: &Client,
    url: &Url,
    domain: Option<&str>,
    moving: Option<&Moving>,
    post: Post,
) -> Result<Settled, RequestError> {
    let Prepared { chunk, mut outcomes, drafts, body, things } = post.prepared;
    let waiting = outcomes.iter().filter(|outcome| outcome.is_none()).count();
    let results: Vec<ItemResult> = match body {
        Some(body) if !post.dry_run => client.post_once(url, &post.key, body).await?,
        Some(_) | None => Vec::new(),
    };
    if !post.dry_run && results.len() != waiting {
        let text = format!("{} results came for {waiting} rows", results.len());
        return Err(RequestError::Unreachable(text));
    }
    let mut results = results.into_iter();
    let open = chunk.rows.iter().zip(&drafts).zip(&mut outcomes).filter(|(_, outcome)| outcome.is_none());
    for ((row, draft), outcome) in open {
        let is_taken = |result: &ItemResult| result.status == StatusCode::CONFLICT.as_u16();
        *outcome = Some(match (results.next(), moving) {
            (None, None) => Outcome::New,
            (None, Some(moving)) => moving.settle(row, &post.key, None).await?,
            (Some(result), _) if result.status < 300 => {
                Outcome::Created(Code { short_id: result.short_id, short_url: result.short_url })
            }
            (Some(result), Some(moving)) if is_taken(&result) => {
                moving.settle(row, &post.key, Some(result.errors.join(" "))).await?
            }
            (Some(result), _) => {
                let is_taken = is_taken(&result);
                let found = match draft.as_ref().filter(|_| is_taken) {
                    Some(draft) => same(client, domain, draft).await?,
                    None => None,
                };
                found.map_or_else(|| Outcome::Refused(result.errors.join(" ")), Outcome::There)
            }
        });
    }
    let rows = chunk.rows.into_iter().zip(outcomes.into_iter().flatten()).collect();
    Ok(Settled { index: chunk.index, rows, faults: chunk.faults, place: chunk.place, things })
}

impl Settled {
    /// Rows with an outcome of some kind.
    pub(super) fn count(&self, kind: impl Fn(&Outcome) -> bool) -> u64 {
        self.rows.iter().filter(|(_, outcome)| kind(outcome)).count() as u64
    }

    /// The rejected lines, in the file's order.
    pub(super) fn rejected(&self) -> Vec<Reject> {
        let refused = self.rows.iter().filter_map(|(row, outcome)| match outcome {
            Outcome::Refused(reason) => {
                Some(Reject { line: row.line, reason: reason.clone(), record: row.record.clone() })
            }
            Outcome::Created(_)
            | Outcome::There(_)
            | Outcome::Changed(_)
            | Outcome::Skipped(_)
            | Outcome::New => None,
        });
        let faults = self.faults.iter().map(|fault| Reject {
            line: fault.line,
            reason: fault.reason.clone(),
            record: fault.record.clone(),
        });
        let mut rejects: Vec<Reject> = refused.chain(faults).collect();
        rejects.sort_by_key(|reject| reject.line);
        rejects
    }
}
