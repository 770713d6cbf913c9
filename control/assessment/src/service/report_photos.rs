//! Photos of reports: kept beside files, and shown to operators who may read personal data.

use std::{convert::Infallible, io, net::IpAddr};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use shared::{
    id::{AccountId, FileId, ReportId},
    time::UnixMillis,
};
use tracing::instrument;

use super::{AssessmentState, access::require, capacity::Place, cases, reports::DAY_MS};
use crate::{
    domain::{
        access::Actor,
        limits::shorten,
        permission::{Subject::PersonalData, Verb},
        photo::{MAX_FORM_BYTES, MAX_OF_DAY_BYTES, Photo, StoredPhoto},
        quota::Quota,
    },
    error::ServiceError,
    store::{Conn, Ctx, blobs::WriteError, files, quotas, report_photos},
};

/// How long the bytes of a photo may be without a report: much longer than a request takes.
const PENDING_MS: i64 = 10 * 60 * 1_000;

/// A place for a form with a photo: so many of an account and of an address are read at the same time.
///
/// # Errors
/// As [`begin`](super::reports::begin); 429 or 503 when there are too many.
#[instrument(skip_all)]
pub async fn admit(
    state: &AssessmentState,
    host: &str,
    short_id: &str,
    client: Option<IpAddr>,
) -> Result<Place, ServiceError> {
    let account = super::reports::find_account(state, host, short_id).await?;
    state.capacity.photo(account, client)
}

/// Whether an account takes any other photo. Strangers send them: so many come within a day, and together they have at most half of
/// the storage of an account that has a limit.
pub(super) async fn has_room(
    conn: &mut Conn,
    account: AccountId,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    if report_photos::sum_since(conn, account, UnixMillis(now.0 - DAY_MS)).await? >= MAX_OF_DAY_BYTES {
        return Ok(false);
    }
    let found = quotas::find(conn, account, Quota::StorageBytes, now).await?;
    let Some(found) = found.filter(|found| found.is_counted) else { return Ok(true) };
    let largest = MAX_FORM_BYTES as u64;
    let photos = report_photos::sum_since(conn, account, UnixMillis(0)).await?;
    Ok(found.limit.saturating_sub(found.used) >= largest && photos.saturating_add(largest) <= found.limit / 2)
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

/// Finds the photo of a report, with its bytes as they are read.
///
/// # Errors
/// The account or the key may not read cases or personal data, or there is no such case, report or photo.
#[instrument(skip_all)]
pub async fn read(
    state: &AssessmentState,
    actor: &Actor,
    case: &str,
    report: &str,
) -> Result<(StoredPhoto, BoxStream<'static, io::Result<Bytes>>), ServiceError> {
    let _ = require(actor, Verb::Read, PersonalData)?;
    let absent = || ServiceError::not_found("photo of the report", shorten(report));
    let id: ReportId = report.parse().map_err(|_| absent())?;
    let mut conn = state.db.read().await?;
    let case = cases::visible(&mut conn, actor, case).await?;
    let photo = report_photos::find(&mut conn, actor.account, (case.state.id, id)).await?;
    drop(conn);
    let photo = photo.ok_or_else(absent)?;
    // Removed between the two reads.
    let bytes = state.blobs.read(&photo.blob).await?.ok_or_else(absent)?;
    Ok((photo, bytes.map(|piece| piece.map_err(io::Error::other)).boxed()))
}
