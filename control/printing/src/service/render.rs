//! Draws a chunk: off the runtime, one at a time in each process.

use std::{
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use catalog::store::blobs::WriteError;
use futures_util::stream;
use kernel::{
    domain::quota::Quota,
    store::{Ctx, StoreError, quotas},
};
use print::{Chunk, PrintError, PrintItem, PrintSpec, render_chunk_until};

use super::{PrintState, codes as links, steps::Stepped};
use crate::{
    domain::order::{Order, Stage},
    error::{CommonError, PrintingError, ServiceError},
    store::{
        chunks::{self, StoredChunk},
        codes,
        leases::{self, Claimed},
    },
};

/// Time after which the lease is renewed while a chunk is drawn and stored, or files are joined; so long the work on an
/// order goes on after it was cancelled.
const RENEW: Duration = Duration::from_secs(2);

/// Codes whose names are compared at once: about a millisecond.
const CODES: u64 = 1_000;

/// What an order draws.
///
/// # Errors
/// This release does not know it any more.
pub(super) fn spec(order: &Order) -> Result<PrintSpec, ServiceError> {
    Ok(PrintSpec::parse(&order.details.spec).map_err(CommonError::Faults)?)
}

/// The blob of a chunk: the same for every holder, so that what was written and not noted is found and overwritten.
pub(super) fn blob(order: &Order, number: u64) -> String {
    format!("{}/print-{}-{number}", order.account, order.id)
}

/// Draws the next chunk.
///
/// # Errors
/// A code cannot be drawn as asked, two files would have one name, or the chunk is more than the account may store.
pub(super) async fn render(state: &PrintState, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let mut next = claimed.item.clone();
    let (seq, number) = (next.stamp.seq, next.details.chunks);
    let spec = spec(&next)?;
    let range = spec.chunks(next.details.codes).nth(usize::try_from(number).unwrap_or(usize::MAX));
    let Some(range) = range else {
        let next = next.at(Stage::Publish, state.clock.now());
        return super::steps::finish(state.db.begin(&Ctx::default()).await?, claimed, next).await;
    };
    let (first, last) = (range.start, range.end);
    // A slow blob store may take longer than a lease, too.
    let storing = async {
        if number == 0 {
            check_names(state, &claimed.item, &spec).await?;
        }
        let mut conn = state.db.read().await?;
        let found = codes::list(&mut conn, seq, first, last).await?;
        drop(conn);
        let items: Vec<PrintItem> = found.into_iter().map(PrintItem::from).collect();
        let stop = Stop::default();
        let is_stopped = stop.0.clone();
        let drawing =
            tokio::task::spawn_blocking(move || render_chunk_until(&spec, first, &items, &is_stopped));
        let drawn = drawing.await;
        let drawn =
            drawn.map_err(|error| ServiceError::Internal(format!("a chunk was not drawn: {error}")))?;
        store(state, &claimed.item, number, drawn.map_err(refused)?).await
    };
    let (stored, bytes) = tokio::select! {
        stored = storing => stored?,
        lost = keep(state, claimed) => {
            lost?;
            return Ok(Stepped::Lost);
        }
    };
    next.details.chunks += 1;
    next.details.chunk_bytes = next.details.chunk_bytes.saturating_add(bytes);
    next.details.rendered = range.end;
    let is_over = range.end >= next.details.codes;
    let now = state.clock.now();
    let next = next.at(if is_over { Stage::Publish } else { Stage::Render }, now);
    let mut tx = state.db.begin(&Ctx::default()).await?;
    // First the order: another holder may have noted this chunk.
    if !leases::save(&mut tx, claimed, &next, false).await? {
        drop(tx);
        super::purge::remove_if_ended(state, &claimed.item, &stored.blob).await?;
        return Ok(Stepped::Lost);
    }
    // Where it is too much the order fails, and its chunks are removed with the rest of it.
    quotas::charge(&mut tx, next.account, Quota::StorageBytes, bytes, now).await?;
    chunks::insert(&mut tx, seq, number, &stored).await?;
    tx.commit().await?;
    state.metrics.rendered.inc_by(range.end - range.start);
    claimed.item = next;
    Ok(Stepped::Moved)
}

/// Stops the drawing of a chunk when nobody waits for it any more: the thread that draws is not ended by itself.
#[derive(Debug, Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Refuses an order of which two codes would be files of one name, before anything is drawn.
async fn check_names(state: &PrintState, order: &Order, spec: &PrintSpec) -> Result<(), ServiceError> {
    if !spec.format().is_zip() {
        return Ok(());
    }
    let mut names = print::Names::new(spec);
    let (mut from, total) = (0, order.details.codes);
    while from < total {
        let to = total.min(from + CODES);
        let mut conn = state.db.read().await?;
        let found = codes::list(&mut conn, order.stamp.seq, from, to).await?;
        drop(conn);
        let faults = links::twins(&mut names, from, &found);
        if !faults.is_empty() {
            return Err(CommonError::Faults(faults).into());
        }
        from = to;
    }
    Ok(())
}

/// Writes a chunk to its blobs; also returns how many bytes that are.
async fn store(
    state: &PrintState,
    order: &Order,
    number: u64,
    chunk: Chunk,
) -> Result<(StoredChunk, u64), ServiceError> {
    let Chunk { body, index, manifest, receipt: _ } = chunk;
    let blob = blob(order, number);
    let stored =
        StoredChunk { blob: blob.clone(), body_bytes: body.len() as u64, index_bytes: index.len() as u64 };
    let bytes = stored.body_bytes + stored.index_bytes + manifest.len() as u64;
    write(state, &blob, vec![body, index]).await?;
    write(state, &StoredChunk::manifest_blob(&blob), vec![manifest.into_bytes()]).await?;
    Ok((stored, bytes))
}

async fn write(state: &PrintState, key: &str, pieces: Vec<Vec<u8>>) -> Result<(), ServiceError> {
    let pieces = pieces.into_iter().map(|piece| Ok::<Bytes, std::io::Error>(piece.into()));
    state.blobs.write(key, &mut stream::iter(pieces)).await.map_err(|error| unwritten(key, error))?;
    Ok(())
}

/// Why a blob was not written: the store is away, or something else is wrong.
pub(super) fn unwritten(key: &str, error: WriteError) -> ServiceError {
    match error {
        WriteError::Store(error) => error.into(),
        error @ (WriteError::TooLarge(_) | WriteError::TooSlow | WriteError::BrokenOff) => {
            ServiceError::Internal(format!("the blob {key}: {error}"))
        }
    }
}

/// What cannot be drawn is a fault of the order; other failures are tried again.
pub(super) fn refused(error: PrintError) -> ServiceError {
    match error {
        PrintError::Symbol { .. }
        | PrintError::Code { .. }
        | PrintError::NotDecoded { .. }
        | PrintError::DuplicateName { .. } => PrintingError::CannotDraw(error).into(),
        // A PDF has an end, wherever the bytes are written.
        PrintError::Io(ref found) if found.kind() == ErrorKind::FileTooLarge => {
            PrintingError::CannotDraw(error).into()
        }
        // What is read comes from the store of blobs, which may be away.
        PrintError::Io(found) => match found.downcast::<ServiceError>() {
            Ok(error) => error,
            Err(found) => ServiceError::Internal(found.to_string()),
        },
        PrintError::Stopped | PrintError::Chunk(_) => ServiceError::Internal(error.to_string()),
    }
}

/// Holds an order while a step takes long; returns when another worker has taken it or it was cancelled.
pub(super) async fn keep(state: &PrintState, claimed: &Claimed) -> Result<(), StoreError> {
    loop {
        tokio::time::sleep(RENEW).await;
        let mut tx = state.db.begin(&Ctx::default()).await?;
        let is_held = leases::hold(&mut tx, claimed).await?;
        tx.commit().await?;
        if !is_held {
            return Ok(());
        }
    }
}
