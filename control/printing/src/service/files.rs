//! Files of an order: listed and downloaded.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use kernel::{
    domain::{
        access::Actor,
        limits::shorten,
        subject::{Subject::PrintOrders, Verb},
    },
    service::access::require,
};
use tracing::instrument;

use super::{PrintState, orders};
use crate::{
    domain::order::{Order, Status, StoredFile},
    error::{PrintingError, ServiceError},
};

/// The files of an order that is complete; none after they were removed.
///
/// # Errors
/// There is no such order (404), or it is not complete (409).
#[instrument(skip_all)]
pub async fn list(state: &PrintState, actor: &Actor, id: &str) -> Result<Order, ServiceError> {
    let _ = require(actor, Verb::Read, PrintOrders)?;
    let order = orders::find(state, actor, id).await?;
    if order.status != Status::Complete {
        return Err(PrintingError::NoFiles { id: order.id, status: order.status.as_str() }.into());
    }
    Ok(order)
}

/// A file of an order.
///
/// # Errors
/// There is no such order or file (404), or the order is not complete (409).
#[instrument(skip_all)]
pub async fn find(
    state: &PrintState,
    actor: &Actor,
    id: &str,
    name: &str,
) -> Result<StoredFile, ServiceError> {
    let order = list(state, actor, id).await?;
    if order.details.files_removed_at.is_some() {
        return Err(PrintingError::FilesRemoved(order.id).into());
    }
    let file = order.details.files.into_iter().find(|file| file.name == name);
    file.ok_or_else(|| not_found(name))
}

/// The bytes of a file: all, or those of a range that it has.
///
/// # Errors
/// They were removed meanwhile (404).
#[instrument(skip_all)]
pub async fn open(
    state: &PrintState,
    file: &StoredFile,
    range: Option<Range<u64>>,
) -> Result<BoxStream<'static, std::io::Result<Bytes>>, ServiceError> {
    let found = match range {
        None => state.blobs.read(&file.blob).await?,
        Some(range) => state.blobs.read_range(&file.blob, range).await?,
    };
    let bytes = found.ok_or_else(|| not_found(&file.name))?;
    Ok(bytes.map(|piece| piece.map_err(std::io::Error::other)).boxed())
}

fn not_found(name: &str) -> ServiceError {
    ServiceError::not_found("file of the print order", shorten(name))
}
