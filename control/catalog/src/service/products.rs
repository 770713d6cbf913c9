//! Products.

use std::collections::BTreeMap;

use shared::{gtin, id::ProductId};
use tracing::instrument;

use super::{
    Core,
    access::{Caller, require},
    bulk::{self, AfterCommit, Bulk, CreateEach},
    named,
    operations::operations,
    properties,
    scopes::scopes_for,
    user_rules, with_properties,
};
use crate::{
    domain::{
        access::Actor,
        common::{Common, Stamp},
        grant::Grant,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Products, Verb},
        resource::{Product, ProductChange},
    },
    error::{CatalogError, ServiceError},
    store::{self, Tx, documents},
};

/// Creates a product; `project` is what `?project=` names.
///
/// # Errors
/// The key lacks the permission, the name is missing, or the GTIN is wrong or another product's.
#[instrument(skip_all)]
pub async fn create(
    core: &Core,
    caller: &Caller,
    change: ProductChange,
    project: Option<&str>,
) -> Result<Product, ServiceError> {
    let _ = require(caller, Verb::Create, Products)?;
    let _place = core.capacity.write(caller)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    let product = Product::create_in(core, &mut tx, caller, change, project).await?;
    tx.commit().await?;
    Ok(product)
}

impl CreateEach<Core> for Product {
    type Change = ProductChange;

    async fn create_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        mut change: ProductChange,
        project: Option<&str>,
    ) -> Result<Self, ServiceError> {
        let grant = require(actor, Verb::Create, Products)?;
        let now = core.clock.now();
        let id = ProductId::new(now.0, core.random16()?);
        let name = change.name.take().ok_or_else(super::name_required)?;
        keep_gtin(None, &mut change.details.common)?;
        user_rules::check_write::<Self>(tx, actor, None, &mut change.details.common).await?;
        let asked = change.details.common.scopes.take();
        change.details.common.scopes = scopes_for(tx, actor, &grant, asked, project).await?;
        let new = Product {
            id,
            stamp: Stamp::new(now),
            name,
            details: change.details,
            properties: BTreeMap::new(),
        };
        let mut product = documents::insert(tx, actor.account, new).await?;
        properties::write_initial(tx, actor, id.as_str(), change.properties, now).await?;
        product.properties = properties::shown(tx, actor, id.as_str()).await?;
        Ok(product)
    }
}

operations!(Product, ProductChange, with_properties);

impl Bulk<Core> for Product {
    type Change = ProductChange;

    async fn update_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        mut change: ProductChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        change.details.common.scopes = grant.scopes_of_change(change.details.common.scopes.take());
        let stored: Self = named::find_locked(tx, actor, grant, reference).await?;
        keep_gtin(Some(&stored), &mut change.details.common)?;
        user_rules::check_write(tx, actor, Some(&stored), &mut change.details.common).await?;
        let mut product = stored.apply(change, core.clock.now());
        documents::update(tx, actor.account, &product).await?;
        product.properties = properties::shown(tx, actor, product.id.as_str()).await?;
        Ok((product, AfterCommit::default()))
    }

    async fn delete_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let id = named::find_locked::<Self>(tx, actor, grant, reference).await?.id;
        documents::delete::<Self>(tx, actor.account, id).await?;
        store::properties::remove_all(tx, actor.account, id.as_str()).await?;
        Ok(properties::sweep_after(core, AfterCommit::default()))
    }
}

/// Normalises a new `gs1:01` and refuses an invalid GTIN; a stored value stays.
fn keep_gtin(stored: Option<&Product>, change: &mut Common) -> Result<(), CatalogError> {
    let known = stored.and_then(|stored| stored.details.common.identifiers.as_ref()?.get("gs1:01"));
    let Some(given) = change.identifiers.as_mut().and_then(|all| all.get_mut("gs1:01")) else {
        return Ok(());
    };
    if gtin::is_valid(given) {
        *given = gtin::canonical(given);
    } else if known != Some(&*given) {
        return Err(CatalogError::NoGtin(shorten(given).to_owned()));
    }
    Ok(())
}
