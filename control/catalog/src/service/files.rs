//! Files: their records, and their content in the blob store.

mod uploads;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use shared::{
    id::{AccountId, FileId},
    problem::Code,
};
use tracing::instrument;

pub use self::uploads::{UploadHead, upload};
use super::{
    Catalog,
    access::{Caller, require},
    bulk::{self, AfterCommit, Bulk},
    named::{self, admitted, checked},
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
        quota::Quota,
    },
    error::{CatalogError, CommonError, ServiceError},
    store::{Conn, Ctx, Tx, documents, files, quotas},
};

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
    let (_place, mut tx) = catalog.begin_write(caller).await?;
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
        let file = checked(tx, admitted(found, grant, id.as_str())?)?.apply(change, catalog.clock.now());
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
        let file = checked(tx, admitted(found, grant, id.as_str())?)?;
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
    let content = file.content.clone().ok_or(CatalogError::NoContent(file.id))?;
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
    CommonError::Key(Code::KeyMissing).into()
}
