//! Products.

use std::collections::BTreeMap;

use shared::{
    digital_link::SerialMode,
    gtin,
    id::{AccountId, ProductId},
    time::UnixMillis,
};
use tracing::instrument;

use super::{
    ChangedProduct, Core,
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
        common::Stamp,
        digital_links::{MAX_ALIASES, MAX_RECORDS, ProductLinks, read_gtin},
        grant::Grant,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Products, Verb},
        resource::{Product, ProductChange},
    },
    error::{CatalogError, ServiceError},
    store::{self, Tx, documents, gtin_aliases, quotas},
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
    let (_place, mut tx) = core.begin_write(caller).await?;
    let product = Product::create_in(core, &mut tx, caller, change, project).await?;
    tx.commit().await?;
    if product.details.digital.has_links() {
        core.readers.wake_edges();
    }
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
        keep_gtin(None, &mut change)?;
        user_rules::check_links(actor, change.details.digital != ProductLinks::default())?;
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
        follow_links(core, tx, actor.account, (None, Some(&product)), now).await?;
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
        keep_gtin(Some(&stored), &mut change)?;
        user_rules::check_write(tx, actor, Some(&stored), &mut change.details.common).await?;
        let (before, now) = (stored.clone(), core.clock.now());
        let mut product = stored.apply(change, now);
        user_rules::check_links(actor, product.details.digital != before.details.digital)?;
        documents::update(tx, actor.account, &product).await?;
        product.properties = properties::shown(tx, actor, product.id.as_str()).await?;
        let followed = follow_links(core, tx, actor.account, (Some(&before), Some(&product)), now).await?;
        Ok((product, AfterCommit::default().wake_edges(followed)))
    }

    async fn delete_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let stored: Self = named::find_locked(tx, actor, grant, reference).await?;
        let id = stored.id;
        documents::delete::<Self>(tx, actor.account, id).await?;
        store::properties::remove_all(tx, actor.account, id.as_str()).await?;
        // Before the order of changes, for which all accounts wait: see the deletion of a Thng.
        quotas::settle(tx).await?;
        let now = core.clock.now();
        let followed = follow_links(core, tx, actor.account, (Some(&stored), None), now).await?;
        Ok(properties::sweep_after(core, AfterCommit::default().wake_edges(followed)))
    }
}

/// Normalises a new `gs1:01` and refuses an invalid GTIN; a stored value stays. Codes with the former GTIN of a product that
/// leads somewhere, or whose items may, are printed: it becomes an alias, unless the change says which there are.
fn keep_gtin(stored: Option<&Product>, change: &mut ProductChange) -> Result<(), CatalogError> {
    let known = stored.and_then(Product::gtin);
    let Some(given) = change.details.common.identifiers.as_mut().and_then(|all| all.get_mut("gs1:01")) else {
        return Ok(());
    };
    if gtin::is_valid(given) {
        *given = gtin::canonical(given);
    } else if known != Some(given.as_str()) {
        return Err(CatalogError::NoGtin(shorten(given).to_owned()));
    }
    let new = given.clone();
    let aliases = &mut change.details.digital.gtin_aliases;
    let former = known.and_then(|known| read_gtin(known).ok()).filter(|known| *known != new);
    if let Some((former, stored)) = former.zip(stored).filter(|(_, one)| one.details.digital.may_lead())
        && aliases.is_none()
    {
        let mut all = stored.details.digital.aliases().to_vec();
        all.retain(|alias| *alias != former);
        all.push(former);
        if all.len() > MAX_ALIASES {
            return Err(CatalogError::TooManyAliases { most: MAX_ALIASES });
        }
        *aliases = Some(all);
    }
    // A GTIN that comes back is none of the former ones.
    if aliases.is_none() && stored.is_some_and(|stored| stored.details.digital.aliases().contains(&new)) {
        *aliases = stored.map(|stored| stored.details.digital.aliases().to_vec());
    }
    if let Some(aliases) = aliases {
        aliases.retain(|alias| *alias != new);
    }
    Ok(())
}

/// What follows from a product's GTINs and links before and after a change; returns whether edges must learn of it.
async fn follow_links(
    core: &Core,
    tx: &mut Tx,
    account: AccountId,
    (before, after): (Option<&Product>, Option<&Product>),
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    let Some(id) = after.or(before).map(|product| product.id) else { return Ok(false) };
    let gtins = |product: Option<&Product>| {
        let all = product.map(|one| (one.gtin().map(str::to_owned), one.details.digital.aliases().to_vec()));
        all.filter(|(gtin, aliases)| gtin.is_some() || !aliases.is_empty())
    };
    let is_moved = gtins(before) != gtins(after);
    match after {
        Some(after) => {
            check_gtin(after)?;
            check_records(before, after)?;
            if is_moved {
                let aliases = after.details.digital.aliases();
                gtin_aliases::replace(tx, account, id, after.gtin(), aliases).await?;
            }
        }
        None => gtin_aliases::delete(tx, account, id).await?,
    }
    let links =
        |product: Option<&Product>| product.map(|one| one.details.digital.clone()).unwrap_or_default();
    let (old, new) = (links(before), links(after));
    let has_items = |mode: Option<SerialMode>| mode.unwrap_or_default().has_items();
    // An item without links of its own has a record only while its product leads somewhere.
    let is_led = old.of_gtin().is_empty() != new.of_gtin().is_empty();
    let moves_things = (has_items(old.serial_mode) || has_items(new.serial_mode))
        && (is_moved || is_led || old.serial_mode != new.serial_mode);
    if !old.has_links() && !new.has_links() && !moves_things {
        return Ok(false);
    }
    let has_new_links = (&old.links, &old.levels) != (&new.links, &new.levels);
    let changed = ChangedProduct { id, has_new_links, moves_things };
    core.dependents.product_changed(tx, account, changed, now).await
}

/// Refuses links and former GTINs of a product without a GTIN that a Digital Link can say.
fn check_gtin(product: &Product) -> Result<(), CatalogError> {
    let what = match &product.details.digital {
        links if links.has_links() => "links",
        links if !links.aliases().is_empty() => "gtinAliases",
        _ => return Ok(()),
    };
    let gtin = product.gtin().ok_or(CatalogError::NoDigitalLink(what, "is missing"))?;
    read_gtin(gtin).map(|_| ()).map_err(|fault| CatalogError::NoDigitalLink(what, fault))
}

/// Refuses more records than a product may have. One that has more of before may be changed, but not to more.
fn check_records(before: Option<&Product>, after: &Product) -> Result<(), CatalogError> {
    let before = before.map_or(0, |product| product.details.digital.count_records());
    let found = after.details.digital.count_records();
    if found > MAX_RECORDS.max(before) {
        return Err(CatalogError::TooManyRecords { most: MAX_RECORDS, found });
    }
    Ok(())
}
