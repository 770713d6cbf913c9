//! Uploads: the new content of a file is stored completely, or the previous one stays.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use serde_json::json;
use shared::{
    id::{AccountId, FileId},
    time::UnixMillis,
};
use tracing::instrument;

use super::{
    super::{Catalog, access::require},
    Visitor, discard, find, key_missing, not_found, parse, signed_account,
};
use crate::{
    domain::{
        file::{Content, File},
        permission::{Subject::Files, Verb},
        quota::{Exceeded, Quota},
    },
    error::{CatalogError, ServiceError},
    store::{
        Ctx, accounts,
        blobs::{Rate, WriteError, Written},
        documents, files, quotas,
    },
};

/// How long an upload may take before its blob counts as left behind: longer than any request lasts.
const UPLOAD_MS: i64 = 6 * 60 * 60 * 1_000;

/// Bytes that are still read of a body that is too large, so that the client gets to read the answer.
const MAX_DRAIN_BYTES: usize = 64 * 1024 * 1024;

/// Longest silence of a client whose body is read and forgotten.
const DRAIN_SILENCE: Duration = Duration::from_secs(10);

/// Headers of an upload.
#[derive(Debug, Clone, Default)]
pub struct UploadHead {
    /// The media type; that of the file's record wins.
    pub media_type: Option<String>,
    /// How many bytes will come, if that is known.
    pub size_bytes: Option<u64>,
    /// The client's address.
    pub client: Option<IpAddr>,
}

// Spec gap: a second upload is not mentioned; it replaces the content once it is complete.
/// Writes the content of a file: completely, or the previous content stays.
///
/// # Errors
/// `Code::TooLarge`, `Code::Invalid` when the body broke off, `Code::Suspended`, 404 when the file does not exist,
/// 429 or 503 when there are too many uploads, 403 when the account has no room, or a store failed.
#[instrument(skip_all)]
pub async fn upload<E: Send + 'static>(
    catalog: &Catalog,
    visitor: Visitor,
    id: &str,
    head: UploadHead,
    mut body: impl Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
) -> Result<(), ServiceError> {
    let id = parse(id)?;
    let account = writable_account(catalog, &visitor, id).await?;
    if let Err(error) = check_room(catalog, (account, id), head.size_bytes).await {
        drain(&mut body).await;
        return Err(error);
    }
    if head.size_bytes.is_some_and(|size| size > catalog.blobs.max_bytes()) {
        drain(&mut body).await;
        return Err(refusal(WriteError::TooLarge(catalog.blobs.max_bytes())));
    }
    let (actor, ctx) = match &visitor {
        Visitor::Actor(caller) => (Some(&caller.actor), caller.ctx.clone()),
        Visitor::Signed | Visitor::Nobody => (None, Ctx::default()),
    };
    let place = catalog.capacity.upload(account, actor, id, head.client)?;
    let open = catalog.open_quotas.take(&catalog.db, account, Quota::Uploads, catalog.clock.now()).await?;
    let catalog = catalog.clone();
    // A separate task, because a partial file must be deleted even if the client disconnects.
    let task = tokio::spawn(async move {
        let _places = (place, open);
        write(&catalog, &ctx, (account, id), head.media_type, body).await
    });
    task.await.unwrap_or_else(|error| Err(ServiceError::Internal(error.to_string())))
}

/// Refuses a body that cannot be kept before it comes. It is counted when it has come: another may come first.
async fn check_room(
    catalog: &Catalog,
    (account, id): (AccountId, FileId),
    size_bytes: Option<u64>,
) -> Result<(), ServiceError> {
    let mut conn = catalog.db.read().await?;
    let quota = Quota::StorageBytes;
    let found = quotas::find(&mut conn, account, quota, catalog.clock.now()).await?;
    let Some(found) = found.filter(|found| found.is_counted) else { return Ok(()) };
    let file: Option<File> = documents::find(&mut conn, account, id).await?;
    let size_before = file.and_then(|file| file.content).map_or(0, |content| content.size_bytes);
    let wanted = size_bytes.unwrap_or(1).saturating_sub(size_before);
    if wanted <= found.limit.saturating_sub(found.used) {
        return Ok(());
    }
    Err(Exceeded { quota, limit: found.limit, used: found.used, wanted }.into())
}

async fn writable_account(
    catalog: &Catalog,
    visitor: &Visitor,
    id: FileId,
) -> Result<AccountId, ServiceError> {
    let mut conn = catalog.db.read().await?;
    match visitor {
        Visitor::Signed => signed_account(catalog, &mut conn, id).await,
        Visitor::Actor(actor) => {
            let grant = require(actor, Verb::Update, Files)?;
            find(&mut conn, actor.account, &grant, id).await?;
            Ok(actor.account)
        }
        Visitor::Nobody => Err(key_missing()),
    }
}

async fn write<E>(
    catalog: &Catalog,
    ctx: &Ctx,
    (account, id): (AccountId, FileId),
    media_type: Option<String>,
    mut body: impl Stream<Item = Result<Bytes, E>> + Unpin,
) -> Result<(), ServiceError> {
    let now = catalog.clock.now();
    let nonce = FileId::new(now.0, catalog.random16()?);
    let blob = format!("{account}/{id}-{nonce}");
    let mut tx = catalog.db.begin(&Ctx::default()).await?;
    files::note_garbage(&mut tx, &blob, UnixMillis(now.0 + UPLOAD_MS)).await?;
    tx.commit().await?;
    let limits = &catalog.capacity.limits;
    let rate = Rate { bytes_per_second: limits.upload_rate, window: limits.upload_window };
    let written = match catalog.blobs.write_at_rate(&blob, &mut body, rate).await {
        Ok(written) => written,
        Err(error) => {
            discard(catalog, &blob).await;
            if matches!(error, WriteError::TooLarge(_)) {
                drain(&mut body).await;
            }
            return Err(refusal(error));
        }
    };
    match settle(catalog, ctx, (account, id), media_type, &blob, written).await {
        Ok(before) => {
            if let Some(before) = before {
                discard(catalog, &before).await;
            }
            Ok(())
        }
        Err(error) => {
            discard(catalog, &blob).await;
            Err(error)
        }
    }
}

/// Sets the new content of a file; returns the previous blob.
async fn settle(
    catalog: &Catalog,
    ctx: &Ctx,
    (account, id): (AccountId, FileId),
    media_type: Option<String>,
    blob: &str,
    written: Written,
) -> Result<Option<String>, ServiceError> {
    let mut tx = catalog.db.begin(ctx).await?;
    // An upload takes long; the account may have been suspended meanwhile.
    if accounts::is_suspended(&mut tx, account).await? {
        return Err(catalog.key_lookups.suspended());
    }
    let mut file: File = documents::find_locked(&mut tx, account, id).await?.ok_or_else(|| not_found(id))?;
    let now = catalog.clock.now();
    let content = Content { blob: blob.to_owned(), size_bytes: written.size_bytes, etag: written.etag };
    let state = |content: &Content| json!({"sizeBytes": content.size_bytes, "etag": content.etag});
    let states = (file.content.as_ref().map(state), Some(state(&content)));
    tx.note(account, ("fileContent", id.as_str()), || states);
    let size_bytes = content.size_bytes;
    let before = file.content.replace(content);
    file.details.kind = file.details.kind.or(media_type);
    file.stamp = file.stamp.touch(now);
    documents::update(&mut tx, account, &file).await?;
    let size_before = before.as_ref().map_or(0, |before| before.size_bytes);
    quotas::charge(&mut tx, account, Quota::StorageBytes, size_bytes.saturating_sub(size_before), now)
        .await?;
    quotas::release(&mut tx, account, Quota::StorageBytes, size_before.saturating_sub(size_bytes));
    files::forget_garbage(&mut tx, blob).await?;
    let before = before.map(|content| content.blob);
    if let Some(before) = &before {
        files::note_garbage(&mut tx, before, now).await?;
    }
    tx.commit().await?;
    Ok(before)
}

async fn drain<E>(body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin)) {
    let mut left = MAX_DRAIN_BYTES;
    while let Ok(Some(Ok(chunk))) = tokio::time::timeout(DRAIN_SILENCE, body.next()).await {
        left = left.saturating_sub(chunk.len());
        if left == 0 {
            return;
        }
    }
}

fn refusal(error: WriteError) -> ServiceError {
    match error {
        WriteError::TooLarge(most) => CatalogError::FileTooLarge { most }.into(),
        WriteError::TooSlow => CatalogError::UploadTooSlow.into(),
        WriteError::BrokenOff => CatalogError::UploadBrokenOff.into(),
        WriteError::Store(error) => error.into(),
    }
}
