//! Files of an order: listed and downloaded.

use bytes::Bytes;
use futures_util::stream::BoxStream;
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

/// A file that is sent.
pub struct Download {
    /// Which.
    pub file: StoredFile,
    /// Its bytes.
    pub bytes: BoxStream<'static, std::io::Result<Bytes>>,
}

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
pub async fn download(
    state: &PrintState,
    actor: &Actor,
    id: &str,
    name: &str,
) -> Result<Download, ServiceError> {
    use futures_util::StreamExt as _;
    let order = list(state, actor, id).await?;
    if order.details.files_removed_at.is_some() {
        return Err(PrintingError::FilesRemoved(order.id).into());
    }
    let not_found = || ServiceError::not_found("file of the print order", shorten(name));
    let file = order.details.files.into_iter().find(|file| file.name == name).ok_or_else(not_found)?;
    let bytes = state.blobs.read(&file.blob).await?.ok_or_else(not_found)?;
    Ok(Download { file, bytes: bytes.map(|piece| piece.map_err(std::io::Error::other)).boxed() })
}
