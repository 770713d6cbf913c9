//! Draws a chunk: off the runtime, one at a time in each process.

use std::{io::ErrorKind, time::Duration};

use bytes::Bytes;
use catalog::store::blobs::WriteError;
use futures_util::stream;
use kernel::store::{Ctx, StoreError};
use print::{Chunk, PrintError, PrintItem, PrintSpec, render_chunk};

use super::{PrintState, steps::Stepped};
use crate::{
    domain::order::{Order, Stage},
    error::{CommonError, PrintingError, ServiceError},
    store::{
        chunks::{self, StoredChunk},
        codes,
        leases::{self, Claimed},
    },
};

/// Time after which the lease is renewed while a chunk is drawn and stored, or files are joined.
const RENEW: Duration = Duration::from_secs(8);

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
/// A code cannot be drawn as asked.
pub(super) async fn render(state: &PrintState, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let mut next = claimed.order.clone();
    let (seq, number) = (next.stamp.seq, next.details.chunks);
    let spec = spec(&next)?;
    let range = spec.chunks(next.details.codes).nth(usize::try_from(number).unwrap_or(usize::MAX));
    let Some(range) = range else {
        let next = next.at(Stage::Publish, state.clock.now());
        return super::steps::finish(state.db.begin(&Ctx::default()).await?, claimed, next).await;
    };
    let mut conn = state.db.read().await?;
    let found = codes::list(&mut conn, seq, range.start, range.end).await?;
    drop(conn);
    let items: Vec<PrintItem> = found.into_iter().map(PrintItem::from).collect();
    let first = range.start;
    let drawing = tokio::task::spawn_blocking(move || render_chunk(&spec, first, &items));
    // A slow blob store may take longer than a lease, too.
    let storing = async {
        let drawn = drawing.await;
        let drawn =
            drawn.map_err(|error| ServiceError::Internal(format!("a chunk was not drawn: {error}")))?;
        store(state, &claimed.order, number, drawn.map_err(refused)?).await
    };
    let stored = tokio::select! {
        stored = storing => stored?,
        lost = keep(state, claimed) => {
            lost?;
            return Ok(Stepped::Lost);
        }
    };
    next.details.chunks += 1;
    next.details.rendered = range.end;
    let is_over = range.end >= next.details.codes;
    let next = next.at(if is_over { Stage::Publish } else { Stage::Render }, state.clock.now());
    let mut tx = state.db.begin(&Ctx::default()).await?;
    // First the order: another holder may have noted this chunk.
    if !leases::save(&mut tx, claimed, &next, false).await? {
        drop(tx);
        super::purge::remove_if_ended(state, &claimed.order, &stored.blob).await?;
        return Ok(Stepped::Lost);
    }
    chunks::insert(&mut tx, seq, number, &stored).await?;
    tx.commit().await?;
    state.metrics.rendered.inc_by(range.end - range.start);
    claimed.order = next;
    Ok(Stepped::Moved)
}

/// Writes a chunk to its blobs.
async fn store(
    state: &PrintState,
    order: &Order,
    number: u64,
    chunk: Chunk,
) -> Result<StoredChunk, ServiceError> {
    let Chunk { body, index, manifest, receipt: _ } = chunk;
    let blob = blob(order, number);
    let stored =
        StoredChunk { blob: blob.clone(), body_bytes: body.len() as u64, index_bytes: index.len() as u64 };
    write(state, &blob, vec![body, index]).await?;
    write(state, &StoredChunk::manifest_blob(&blob), vec![manifest.into_bytes()]).await?;
    Ok(stored)
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
        PrintError::Chunk(_) | PrintError::Io(_) => ServiceError::Internal(error.to_string()),
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
