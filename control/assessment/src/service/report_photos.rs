//! Photos of reports: kept beside files, and shown to operators who may read personal data.

use std::{convert::Infallible, net::IpAddr};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use shared::{
    id::{AccountId, FileId, ReportId},
    time::UnixMillis,
};
use tracing::instrument;

use super::{AssessmentState, access::require, capacity::Place, cases};
use crate::{
    domain::{
        access::Actor,
        limits::shorten,
        permission::{Subject::PersonalData, Verb},
        photo::{MAX_FORM_BYTES, Photo, StoredPhoto},
        quota::Quota,
    },
    error::ServiceError,
    store::{Conn, Ctx, StoreError, blobs::WriteError, files, quotas, report_photos},
};

/// How long the bytes of a photo may be without a report: much longer than a request takes.
const PENDING_MS: i64 = 10 * 60 * 1_000;

/// A slot for a form with a photo, as for the upload of a file: so many of an account and of an address at the same time.
///
/// # Errors
/// As [`begin`](super::reports::begin); 429 or 503 when there are too many uploads.
#[instrument(skip_all)]
pub async fn admit(
    state: &AssessmentState,
    host: &str,
    short_id: &str,
    client: Option<IpAddr>,
) -> Result<Place, ServiceError> {
    let account = super::reports::find_account(state, host, short_id).await?;
    let file = FileId::new(state.clock.now().0, state.random16()?);
    state.capacity.upload(account, None, file, client)
}

/// Whether the storage of an account has room for any photo.
pub(super) async fn has_room(
    conn: &mut Conn,
    account: AccountId,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    let found = quotas::find(conn, account, Quota::StorageBytes, now).await?;
    let found = found.filter(|found| found.is_counted);
    Ok(found.is_none_or(|found| found.limit.saturating_sub(found.used) >= MAX_FORM_BYTES as u64))
}

/// Writes the bytes of a photo. They are removed later, unless the photo gets its report.
pub(super) async fn keep(
    state: &AssessmentState,
    account: AccountId,
    photo: Photo,
) -> Result<StoredPhoto, ServiceError> {
    let now = state.clock.now();
    let blob = format!("{account}/{}", FileId::new(now.0, state.random16()?));
    let mut tx = state.db.begin(&Ctx::default()).await?;
    files::note_garbage(&mut tx, &blob, UnixMillis(now.0 + PENDING_MS)).await?;
    tx.commit().await?;
    let mut bytes = stream::iter([Ok::<_, Infallible>(Bytes::from(photo.bytes))]);
    let written = state.blobs.write(&blob, &mut bytes).await.map_err(|error| match error {
        WriteError::Store(error) => ServiceError::from(error),
        other @ (WriteError::TooLarge(_) | WriteError::TooSlow | WriteError::BrokenOff) => {
            ServiceError::Internal(other.to_string())
        }
    })?;
    Ok(StoredPhoto { blob, kind: photo.kind, size_bytes: written.size_bytes })
}

/// Reads the photo of a report, with its bytes.
///
/// # Errors
/// The account or the key may not read cases or personal data, or there is no such case, report or photo.
#[instrument(skip_all)]
pub async fn read(
    state: &AssessmentState,
    actor: &Actor,
    case: &str,
    report: &str,
) -> Result<(StoredPhoto, Vec<u8>), ServiceError> {
    let _ = require(actor, Verb::Read, PersonalData)?;
    let absent = || ServiceError::not_found("photo of the report", shorten(report));
    let id: ReportId = report.parse().map_err(|_| absent())?;
    let mut conn = state.db.read().await?;
    let case = cases::visible(&mut conn, actor, case).await?;
    let photo = report_photos::find(&mut conn, actor.account, (case.state.id, id)).await?;
    drop(conn);
    let photo = photo.ok_or_else(absent)?;
    // Removed between the two reads.
    let mut stream = state.blobs.read(&photo.blob).await?.ok_or_else(absent)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk.map_err(StoreError::blob)?);
    }
    Ok((photo, bytes))
}
