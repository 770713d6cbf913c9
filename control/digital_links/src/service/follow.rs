//! Brings the rows of a resource to what follows from it.

use std::collections::{BTreeSet, HashMap};

use catalog::domain::resource::{Product, Thng};
use kernel::{
    domain::scopes::Scopes,
    error::ServiceError,
    service::ChangedProduct,
    store::{LeftThings, Tx, documents},
};
use redirects::store::log;
use shared::{
    id::{AccountId, ProductId, ThngId},
    short_url::ShortDomain,
    time::UnixMillis,
};
use tenants::store::accounts;

use super::{
    apply::{Wanted, Write, apply},
    targets,
};
use crate::{
    domain::plan,
    store::{rows, tasks},
};

/// Things whose rows are written together: each has one for each GTIN of its product on each domain, with links of 64 KiB at most.
const TOGETHER: usize = 100;

/// Makes the rows of a product that was changed, or removed; returns whether one changed.
///
/// # Errors
/// 400 for a link to where none may lead, 409 where another resource has a Digital Link of it or there are too many links.
pub async fn follow_product(
    tx: &mut Tx,
    account: AccountId,
    changed: ChangedProduct,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    // Also without a domain that resolves them: what is stored was checked.
    if changed.has_new_links
        && let Some(product) = documents::find::<Product>(tx, account, changed.id).await?
    {
        targets::check(tx, account, &targets::of_product(&product)).await?;
    }
    // Before the domains are read: see the top of the crate.
    log::lock(tx).await?;
    if changed.moves_things {
        tasks::put(tx, account, Some(changed.id), now).await?;
    }
    let domains = domains(tx, account).await?;
    Ok(sync_product(tx, account, changed.id, &domains, now, true).await? > 0)
}

/// Makes the rows of a Thng that was changed, or removed, and is an instance of a product now; returns whether one changed.
///
/// # Errors
/// As [`follow_product`].
pub async fn follow_thng(
    tx: &mut Tx,
    account: AccountId,
    (thng, product): (ThngId, Option<ProductId>),
    has_new_links: bool,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    if has_new_links && let Some(thng) = documents::find::<Thng>(tx, account, thng).await? {
        targets::check(tx, account, &targets::of_thng(&thng)).await?;
    }
    // Most Things have no row and get none: they must not take the order of changes.
    let has_items = match product {
        Some(product) => tasks::has_items(tx, account, product).await?,
        None => false,
    };
    if !has_items && rows::list_keys(tx, account, &[thng.to_string()]).await?.is_empty() {
        return Ok(false);
    }
    if tx.leave(account, thng) {
        return Ok(false);
    }
    log::lock(tx).await?;
    let domains = domains(tx, account).await?;
    Ok(sync_thng(tx, account, thng, (None, &domains), now, true).await? > 0)
}

/// Makes the rows of Things that a transaction has left to its end; returns whether one changed.
///
/// # Errors
/// As [`follow_product`].
pub async fn follow_left(tx: &mut Tx, now: UnixMillis) -> Result<bool, ServiceError> {
    let Some(LeftThings { account, things }) = tx.take_left() else { return Ok(false) };
    // This transaction wrote them, so that nobody changes them until it ends.
    let mut left: Vec<(ThngId, Option<Thng>)> = Vec::with_capacity(things.len());
    // One that was left twice has its rows once: else they would be taken for those of two resources.
    let mut seen = BTreeSet::new();
    for thng in things.into_iter().filter(|thng| seen.insert(*thng)) {
        left.push((thng, documents::find(tx, account, thng).await?));
    }
    log::lock(tx).await?;
    let domains = domains(tx, account).await?;
    let ids: BTreeSet<ProductId> = left.iter().filter_map(|(_, thng)| thng.as_ref()?.product).collect();
    let mut products = HashMap::with_capacity(ids.len());
    for id in ids {
        products.insert(id, documents::find::<Product>(tx, account, id).await?);
    }
    let mut count = 0;
    for some in left.chunks(TOGETHER) {
        let wanted = |(id, thng): &(ThngId, Option<Thng>)| {
            let of = thng.as_ref().and_then(|thng| thng.product);
            let product: Option<&Product> = of.and_then(|id| products.get(&id)?.as_ref());
            wanted_of_thng(*id, thng.as_ref(), product)
        };
        let wanted: Vec<Wanted> = some.iter().map(wanted).collect();
        count += apply(tx, Write { account, is_charged: true, now }, &domains, &wanted).await?;
    }
    Ok(count > 0)
}

/// The rows that a Thng should have, as an instance of this product.
fn wanted_of_thng(id: ThngId, thng: Option<&Thng>, product: Option<&Product>) -> Wanted {
    let (planned, scopes): (_, Option<Scopes>) = match (thng, product) {
        (Some(thng), Some(product)) => (plan::of_thng(thng, product), thng.details.common.scopes.clone()),
        (Some(_) | None, _) => (Vec::new(), None),
    };
    Wanted { resource: id.into(), scopes: scopes.unwrap_or_default(), planned }
}

/// A short domain of an account begins to resolve Digital Links, or no longer does: its rows are made or removed in steps. The
/// transaction holds the lock of the log.
pub async fn follow_domain(tx: &mut Tx, account: AccountId, now: UnixMillis) -> Result<(), ServiceError> {
    Ok(tasks::put(tx, account, None, now).await?)
}

/// Compares the rows of a product with what they should be, and returns how many changed. The transaction holds the lock of the
/// log, and has read the domains behind it.
pub(super) async fn sync_product(
    tx: &mut Tx,
    account: AccountId,
    id: ProductId,
    domains: &[ShortDomain],
    now: UnixMillis,
    is_charged: bool,
) -> Result<usize, ServiceError> {
    let found: Option<Product> = documents::find(tx, account, id).await?;
    let (planned, scopes) = match &found {
        Some(product) => (plan::of_product(product), product.details.common.scopes.clone()),
        None => (Vec::new(), None),
    };
    let wanted = Wanted { resource: id.into(), scopes: scopes.unwrap_or_default(), planned };
    apply(tx, Write { account, is_charged, now }, domains, &[wanted]).await
}

/// The same of a Thng. `known` is a product that was read behind the lock, which may be that of the Thng.
pub(super) async fn sync_thng(
    tx: &mut Tx,
    account: AccountId,
    id: ThngId,
    (known, domains): (Option<&Product>, &[ShortDomain]),
    now: UnixMillis,
    is_charged: bool,
) -> Result<usize, ServiceError> {
    let thng: Option<Thng> = documents::find(tx, account, id).await?;
    let of = thng.as_ref().and_then(|thng| thng.product);
    let known = known.filter(|product| of == Some(product.id));
    let read: Option<Product> = match of {
        Some(product) if known.is_none() => documents::find(tx, account, product).await?,
        Some(_) | None => None,
    };
    let wanted = wanted_of_thng(id, thng.as_ref(), known.or(read.as_ref()));
    apply(tx, Write { account, is_charged, now }, domains, &[wanted]).await
}

/// Domains of an account that resolve Digital Links.
pub(super) async fn domains(tx: &mut Tx, account: AccountId) -> Result<Vec<ShortDomain>, ServiceError> {
    let mut domains = accounts::list_domains(tx, account).await?;
    domains.retain(|domain| domain.digital_links);
    Ok(domains)
}
