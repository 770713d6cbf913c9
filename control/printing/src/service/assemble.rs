//! Joins the chunks of an order into its files: manifest, receipt and the codes.
//!
//! The joining blocks, so it has a thread of its own. Chunks go to it and the file comes from it through bounded channels,
//! so that memory holds a few pieces of each.

use std::io;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use kernel::{
    domain::quota::Quota,
    store::{Ctx, StoreError, quotas},
};
use print::{Assembly, Finished, MANIFEST_HEADER, OrderFacts, PrintError, PrintSpec};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{
    PrintState,
    channel_io::{ChannelReader, ChannelWriter, WAITING},
    render::{self, keep},
    steps::Stepped,
};
use crate::{
    domain::order::{Details, Order, Stage, StoredFile},
    error::ServiceError,
    store::{
        chunks::{self, StoredChunk},
        leases::{self, Claimed},
    },
};

/// Chunks that wait to be joined: a chunk has some 20 MB.
const CHUNKS_WAITING: usize = 1;

/// Joins the chunks of an order.
///
/// # Errors
/// Two files of the order have one name; the files are more than the account may store.
pub(super) async fn assemble(state: &PrintState, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let joined = tokio::select! {
        joined = join(state, &claimed.item) => joined?,
        lost = keep(state, claimed) => {
            lost?;
            return Ok(Stepped::Lost);
        }
    };
    let mut next = claimed.item.clone();
    next.details.files = joined;
    // From here on the files count in place of the chunks, which are removed next.
    let chunk_bytes = std::mem::take(&mut next.details.chunk_bytes);
    let now = state.clock.now();
    let next = next.at(Stage::Clear, now);
    let mut tx = state.db.begin(&Ctx::default()).await?;
    if !leases::save(&mut tx, claimed, &next, false).await? {
        drop(tx);
        for file in next.details.files {
            super::purge::remove_if_ended(state, &claimed.item, &file.blob).await?;
        }
        return Ok(Stepped::Lost);
    }
    // Where it is too much the order fails, and its files are removed with the rest of it.
    let (account, file_bytes) = (next.account, next.details.file_bytes());
    let more = file_bytes.saturating_sub(chunk_bytes);
    quotas::charge(&mut tx, account, Quota::StorageBytes, more, now).await?;
    quotas::release(&mut tx, account, Quota::StorageBytes, chunk_bytes.saturating_sub(file_bytes));
    tx.commit().await?;
    claimed.item = next;
    Ok(Stepped::Moved)
}

/// Writes the files of an order, and returns them: the codes, the manifest, the receipt.
async fn join(state: &PrintState, order: &Order) -> Result<Vec<StoredFile>, ServiceError> {
    let spec = render::spec(order)?;
    let file = |name: &str, content_type: &str, written: catalog::store::blobs::Written| StoredFile {
        name: name.to_owned(),
        content_type: content_type.to_owned(),
        blob: file_blob(order, name),
        size_bytes: written.size_bytes,
        etag: written.etag,
    };
    let (name, content_type) = (spec.file_name(), spec.content_type());
    let manifest = {
        let mut unread = None;
        let pieces = manifest(state, order).map(|piece| piece.map_err(|error| unread = Some(error)));
        let mut pieces = Box::pin(pieces);
        let written = write(state, order, "manifest.csv", &mut pieces).await;
        drop(pieces);
        // This says why the writing broke off.
        match unread {
            Some(error) => return Err(render::refused(PrintError::Io(error))),
            None => written?,
        }
    };
    let facts = OrderFacts { order: order.id.to_string(), members: facts(&order.details) };
    let (finished, written) = codes(state, order, spec, facts).await?;
    let text = finished.receipt.into_bytes();
    let mut receipt = stream::iter([Ok::<Bytes, io::Error>(text.into())]);
    let receipt = write(state, order, "receipt.json", &mut receipt).await?;
    Ok(vec![
        file(name, content_type, written),
        file("manifest.csv", "text/csv", manifest),
        file("receipt.json", "application/json", receipt),
    ])
}

/// Where the bytes of a file of an order are.
pub(super) fn file_blob(order: &Order, name: &str) -> String {
    format!("{}/print-{}-{name}", order.account, order.id)
}

/// What the receipt says beside the drawing. It depends on the order alone, so that files written again are the same.
fn facts(details: &Details) -> Map<String, Value> {
    let mut members = Map::new();
    if let Some(edges) = &details.edges {
        members.insert("edges".to_owned(), serde_json::to_value(edges).unwrap_or_default());
    }
    if let Some(reprint) = &details.reprint {
        members.insert("reprintOf".to_owned(), json!(reprint.of));
        members.insert("reprint".to_owned(), reprint.sent.clone());
    }
    if let Some(serials) = &details.serials {
        let mut value = json!({"product": serials.product, "count": serials.count,
            "form": serials.form.to_string(), "prefix": serials.prefix});
        if let Some(bits) = serials.bits() {
            value["bits"] = bits.into();
        }
        members.insert("serials".to_owned(), value);
    }
    members
}

async fn write<E>(
    state: &PrintState,
    order: &Order,
    name: &str,
    pieces: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
) -> Result<catalog::store::blobs::Written, ServiceError> {
    let key = file_blob(order, name);
    state.blobs.write(&key, pieces).await.map_err(|error| render::unwritten(&key, error))
}

/// The manifest, piece by piece.
fn manifest<'a>(
    state: &'a PrintState,
    order: &'a Order,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'a {
    let header = stream::iter([Ok(Bytes::from_static(MANIFEST_HEADER.as_bytes()))]);
    let lines = stream::iter(0..order.details.chunks).then(move |number| async move {
        let blob = StoredChunk::manifest_blob(&render::blob(order, number));
        read_whole(state, &blob).await.map_err(io::Error::other)
    });
    header.chain(lines)
}

/// Writes the file of the codes.
async fn codes(
    state: &PrintState,
    order: &Order,
    spec: PrintSpec,
    facts: OrderFacts,
) -> Result<(Finished, catalog::store::blobs::Written), ServiceError> {
    let name = spec.file_name();
    let (send_chunk, chunks) = mpsc::channel::<(Bytes, Bytes)>(CHUNKS_WAITING);
    let (send_line, lines) = mpsc::channel(WAITING);
    let (send_piece, mut pieces) = mpsc::channel(WAITING);
    let total = order.details.codes;
    let joining = tokio::task::spawn_blocking(move || {
        let joined = join_chunks(&spec, total, &facts, (chunks, lines), send_piece.clone());
        if joined.is_err() {
            // What was written so far is no file.
            let _ = send_piece.blocking_send(Err(io::ErrorKind::InvalidData.into()));
        }
        joined
    });
    let writing = async move {
        // It ends with the writing: where the store fails, the joining would wait for ever to send the next piece.
        let mut pieces = stream::poll_fn(move |context| pieces.poll_recv(context));
        write(state, order, name, &mut pieces).await
    };
    let (fed, written, joined) = tokio::join!(feed(state, order, send_chunk, send_line), writing, joining);
    fed?;
    let joined = joined.map_err(|error| ServiceError::Internal(format!("files were not joined: {error}")))?;
    match written {
        // The joining broke off then, too; this says why.
        Err(error @ ServiceError::Store(_)) => Err(error),
        written => Ok((joined.map_err(render::refused)?, written?)),
    }
}

/// Sends the chunks, and then the manifest, until nobody takes them any more.
async fn feed(
    state: &PrintState,
    order: &Order,
    chunks: mpsc::Sender<(Bytes, Bytes)>,
    lines: mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), ServiceError> {
    for number in 0..order.details.chunks {
        let chunk = load_chunk(state, order, number).await?;
        if chunks.send(chunk).await.is_err() {
            return Ok(());
        }
    }
    drop(chunks);
    let mut manifest = Box::pin(manifest(state, order));
    while let Some(line) = manifest.next().await {
        if lines.send(line).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The joining itself, on a thread that may block.
fn join_chunks(
    spec: &PrintSpec,
    total: u64,
    facts: &OrderFacts,
    (mut chunks, lines): (mpsc::Receiver<(Bytes, Bytes)>, mpsc::Receiver<io::Result<Bytes>>),
    out: mpsc::Sender<io::Result<Bytes>>,
) -> Result<Finished, PrintError> {
    let mut assembly = Assembly::new(spec, 0..total, facts, ChannelWriter::new(out))?;
    while let Some((body, index)) = chunks.blocking_recv() {
        assembly.add(body.as_ref(), &index)?;
    }
    let mut lines = ChannelReader::new(lines);
    let finished = assembly.finish(&mut lines)?;
    // A format without a manifest leaves it unread.
    io::copy(&mut lines, &mut io::sink())?;
    Ok(finished)
}

/// The drawing of a chunk, and its index.
async fn load_chunk(state: &PrintState, order: &Order, number: u64) -> Result<(Bytes, Bytes), ServiceError> {
    let mut conn = state.db.read().await?;
    let chunk = chunks::load(&mut conn, order.stamp.seq, number).await?;
    drop(conn);
    let mut whole = read_whole(state, &chunk.blob).await?;
    if whole.len() as u64 != chunk.body_bytes + chunk.index_bytes {
        return Err(ServiceError::Internal(format!("the blob {} has another length", chunk.blob)));
    }
    let body = whole.split_to(usize::try_from(chunk.body_bytes).unwrap_or_default());
    Ok((body, whole))
}

async fn read_whole(state: &PrintState, blob: &str) -> Result<Bytes, ServiceError> {
    let gone = || ServiceError::Internal(format!("the blob {blob} is gone"));
    let mut pieces = state.blobs.read(blob).await?.ok_or_else(gone)?;
    let mut whole = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        whole.extend_from_slice(&piece.map_err(StoreError::blob)?);
    }
    Ok(whole.freeze())
}
