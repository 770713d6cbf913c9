//! Reprints: some codes of an order once more, as an order of their own.

use kernel::{
    domain::{
        quota::Quota,
        subject::{
            Subject::{PrintOrders, Redirections},
            Verb,
        },
    },
    service::access::{Caller, require},
    store::quotas,
};
use tracing::instrument;

use super::{PrintState, orders, render};
use crate::{
    domain::{
        input::{Form, Input},
        order::{Details, Order, Stage, Status},
        reprint::ReprintDraft,
    },
    error::{CommonError, PrintingError, ServiceError},
};

/// Accepts a reprint of codes of an order that is complete: with its layout, links and settings. Nothing is made but files.
///
/// # Errors
/// The key lacks the permission; there is no such order (404), it is not complete or its files were removed (409); it has no
/// such codes (400); a quota has no room; too many orders are under way (429).
#[instrument(skip_all)]
pub async fn create(
    state: &PrintState,
    caller: &Caller,
    id: &str,
    draft: ReprintDraft,
) -> Result<Order, ServiceError> {
    let _ = require(caller, Verb::Create, PrintOrders)?;
    let _ = require(caller, Verb::Read, PrintOrders)?;
    let _ = require(caller, Verb::List, Redirections)?;
    let _place = state.capacity.write(caller)?;
    let of = orders::find(state, caller, id).await?;
    if of.status != Status::Complete {
        return Err(PrintingError::NoFiles { id: of.id, status: of.status.as_str() }.into());
    }
    let manifest = of.details.files.iter().find(|file| file.name == "manifest.csv");
    let Some(manifest) = manifest else { return Err(PrintingError::CannotReprint(of.id).into()) };
    let spec = render::spec(&of)?;
    let (reprint, spec) = draft.of(of.id, &spec, of.details.codes).map_err(CommonError::Faults)?;
    let mut conn = state.db.read().await?;
    quotas::require_room(&mut conn, caller.account, Quota::StorageBytes, state.clock.now()).await?;
    drop(conn);
    let mut tx = state.db.begin(&caller.ctx).await?;
    orders::lock(&mut tx, caller).await?;
    let input = Input::new(manifest.blob.clone(), manifest.size_bytes, Form::Manifest, None);
    let details = Details {
        codes: reprint.count(),
        input: Some(input),
        reprint: Some(reprint),
        ..orders::details(caller, of.details.source.clone(), &spec, of.details.wait, Stage::Read)
    };
    orders::insert(state, caller, tx, draft.name, details, &[]).await
}
