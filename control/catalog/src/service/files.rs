//! Files: their records, and their content in the blob store.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream::BoxStream};
use serde_json::json;
use shared::{
    id::{AccountId, FileId},
    problem::Code,
    time::UnixMillis,
};
use tracing::instrument;

use super::{
    Catalog,
    access::{Caller, require},
    bulk::{self, AfterCommit, Bulk},
    named::{self, admitted},
    scopes::scopes_for,
};
use crate::{
    domain::{
        access::Actor,
        common::Stamp,
        file::{Content, File, FileChange},
        grant::Grant,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Files, Verb},
        quota::{Exceeded, Quota},
    },
    error::ServiceError,
    store::{
        Conn, Ctx, Tx, accounts,
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

/// Most blobs that one run of the upkeep deletes.
const PURGE_STEP: u32 = 100;

/// Who requests the content of a file.
#[derive(Debug, Clone)]
pub enum Visitor {
    /// The holder of a signed URL of the file; the signature has been checked.
    Signed,
    /// A caller with a key.
    Actor(Box<Caller>),
    /// Anybody.
    Nobody,
}

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

/// The content of a file on its way out.
pub struct Download {
    /// The file.
    pub file: File,
    /// Its content.
    pub content: Content,
    /// The bytes.
    pub bytes: BoxStream<'static, object_store::Result<Bytes>>,
}

/// Creates a file without content, in a project if `project` names one.
///
/// # Errors
/// The key lacks the permission, the name is missing, or there is no such project.
#[instrument(skip_all)]
pub async fn create(
    catalog: &Catalog,
    caller: &Caller,
    mut change: FileChange,
    project: Option<&str>,
) -> Result<File, ServiceError> {
    let grant = require(caller, Verb::Create, Files)?;
    let now = catalog.clock.now();
    let id = FileId::new(now.0, catalog.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let _place = catalog.capacity.write(caller)?;
    let mut tx = catalog.db.begin(&caller.ctx).await?;
    let scopes = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(&mut tx, caller, &grant, scopes, project).await?;
    let new = File { id, stamp: Stamp::new(now), name, details: change.details, content: None };
    let file = documents::insert(&mut tx, caller.account, new).await?;
    tx.commit().await?;
    Ok(file)
}

/// Reads a file's record.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read(catalog: &Catalog, actor: &Actor, id: &str) -> Result<File, ServiceError> {
    let grant = require(actor, Verb::Read, Files)?;
    let mut conn = catalog.db.read().await?;
    find(&mut conn, actor.account, &grant, parse(id)?).await
}

/// Lists files.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(
    catalog: &Catalog,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<File>, ServiceError> {
    named::list(catalog, actor, request).await
}

/// Merges the members given into a file's record.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn update(
    catalog: &Catalog,
    caller: &Caller,
    id: &str,
    change: FileChange,
) -> Result<File, ServiceError> {
    bulk::update_one(catalog, caller, id, change).await
}

/// Removes a file and its content.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn delete(catalog: &Catalog, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    bulk::delete_one::<_, File>(catalog, caller, id).await
}

impl Bulk<Catalog> for File {
    type Change = FileChange;

    async fn update_in(
        catalog: &Catalog,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        mut change: FileChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        let id = parse(reference)?;
        let scopes = change.details.common.scopes.take();
        change.details.common.scopes = grant.scopes_of_change(scopes);
        let found: Option<Self> = documents::find_locked(tx, actor.account, id).await?;
        let file = admitted(found, grant, id.as_str())?.apply(change, catalog.clock.now());
        documents::update(tx, actor.account, &file).await?;
        Ok((file, AfterCommit::default()))
    }

    async fn delete_in(
        catalog: &Catalog,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let id = parse(reference)?;
        let found: Option<Self> = documents::find_locked(tx, actor.account, id).await?;
        let file = admitted(found, grant, id.as_str())?;
        documents::delete::<Self>(tx, actor.account, id).await?;
        let size_bytes = file.content.as_ref().map_or(0, |content| content.size_bytes);
        quotas::release(tx, actor.account, Quota::StorageBytes, size_bytes);
        let blobs: Vec<String> = file.content.into_iter().map(|content| content.blob).collect();
        for blob in &blobs {
            files::note_garbage(tx, blob, catalog.clock.now()).await?;
        }
        Ok(blobs.into_iter().fold(AfterCommit::default(), |after, blob| {
            let catalog = catalog.clone();
            let name = format!("delete blob {blob}");
            let task = async move {
                discard(&catalog, &blob).await;
                Ok(())
            };
            after.then(name, Box::new(|| Box::pin(task)))
        }))
    }
}

/// Whether the caller may write the content of files, and so gets upload URLs.
#[must_use]
pub fn may_upload(actor: &Actor) -> bool {
    require(actor, Verb::Update, Files).is_ok()
}

// Spec gap: a second upload is not mentioned; it replaces the content once it is complete.
/// Writes the content of a file: completely, or the previous content stays.
///
/// # Errors
/// [`Code::TooLarge`], [`Code::Invalid`] when the body broke off, [`Code::Suspended`], 404 when the file does not exist,
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
    let exceeded = Exceeded { quota, limit: found.limit, used: found.used, wanted };
    Err(ServiceError::refused(exceeded.code(), exceeded.to_string()))
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

/// Opens the content of a file.
///
/// # Errors
/// 401 without a key where one is needed, 403 when the account of the file is suspended, 404 when the file or its content
/// does not exist, or a store failed.
#[instrument(skip_all)]
pub async fn download(catalog: &Catalog, visitor: Visitor, id: &str) -> Result<Download, ServiceError> {
    let mut conn = catalog.db.read().await?;
    let file = match &visitor {
        Visitor::Actor(actor) => {
            // A public file is everybody's, be the key of another account or without the right.
            let id = parse(id)?;
            match find_public(catalog, &mut conn, id).await? {
                Some(file) => file,
                None => {
                    let grant = require(actor, Verb::Read, Files)?;
                    find(&mut conn, actor.account, &grant, id).await?
                }
            }
        }
        Visitor::Signed => {
            let id = parse(id)?;
            let account = signed_account(catalog, &mut conn, id).await?;
            documents::find(&mut conn, account, id).await?.ok_or_else(|| not_found(id))?
        }
        // A private file must be indistinguishable from an absent one.
        Visitor::Nobody => match parse(id) {
            Ok(id) => find_public(catalog, &mut conn, id).await?.ok_or_else(key_missing)?,
            Err(_) => return Err(key_missing()),
        },
    };
    drop(conn);
    let empty = || ServiceError::refused(Code::NotFound, format!("The file {} has no content yet.", file.id));
    let content = file.content.clone().ok_or_else(empty)?;
    // Replaced or deleted between the two reads.
    let bytes = catalog.blobs.read(&content.blob).await?.ok_or_else(|| not_found(file.id))?;
    Ok(Download { file, content, bytes })
}

/// Removes blobs that no file has; returns how many.
pub async fn purge(catalog: &Catalog) -> Result<u64, ServiceError> {
    let mut conn = catalog.db.read().await?;
    let due = files::list_garbage(&mut conn, catalog.clock.now(), PURGE_STEP).await?;
    drop(conn);
    let mut removed = 0;
    for blob in due {
        removed += u64::from(discard(catalog, &blob).await);
    }
    Ok(removed)
}

/// Removes a blob that is noted as garbage; what fails is tried again by the upkeep.
async fn discard(catalog: &Catalog, blob: &str) -> bool {
    let removed = async {
        // A job that was accepted with it reads it first.
        let mut conn = catalog.db.read().await?;
        if catalog.dependents.reads_blob(&mut conn, blob).await? {
            return Ok(false);
        }
        drop(conn);
        catalog.blobs.delete(blob).await?;
        let mut tx: Tx = catalog.db.begin(&Ctx::default()).await?;
        files::forget_garbage(&mut tx, blob).await?;
        tx.commit().await?;
        Ok::<bool, ServiceError>(true)
    };
    match removed.await {
        Ok(is_removed) => is_removed,
        Err(error) => {
            tracing::warn!(%error, "a blob was not deleted; retried later");
            false
        }
    }
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
        WriteError::TooLarge(max) => {
            ServiceError::refused(Code::TooLarge, format!("A file must have at most {max} bytes."))
        }
        WriteError::TooSlow => ServiceError::refused(Code::Invalid, "The body came too slowly."),
        WriteError::BrokenOff => ServiceError::refused(Code::Invalid, "The body broke off."),
        WriteError::Store(error) => error.into(),
    }
}

/// The account of a file of which somebody has a signed URL; what a suspended account gave out opens nothing.
async fn signed_account(catalog: &Catalog, conn: &mut Conn, id: FileId) -> Result<AccountId, ServiceError> {
    let owner = files::find_owner(conn, id).await?.ok_or_else(|| not_found(id))?;
    if owner.is_suspended { Err(catalog.key_lookups.suspended()) } else { Ok(owner.account) }
}

/// A public file, unless its account is suspended.
async fn find_public(catalog: &Catalog, conn: &mut Conn, id: FileId) -> Result<Option<File>, ServiceError> {
    let Some(owner) = files::find_owner(conn, id).await? else { return Ok(None) };
    let found: Option<File> = documents::find(conn, owner.account, id).await?;
    match found.filter(|file| !file.is_private()) {
        Some(_) if owner.is_suspended => Err(catalog.key_lookups.suspended()),
        found => Ok(found),
    }
}

async fn find(conn: &mut Conn, account: AccountId, grant: &Grant, id: FileId) -> Result<File, ServiceError> {
    admitted(documents::find(conn, account, id).await?, grant, id.as_str())
}

fn parse(id: &str) -> Result<FileId, ServiceError> {
    id.parse().map_err(|_| ServiceError::not_found("file", shorten(id)))
}

fn not_found(id: FileId) -> ServiceError {
    ServiceError::not_found("file", id)
}

fn key_missing() -> ServiceError {
    ServiceError::refused(Code::KeyMissing, "No API key was sent.")
}
