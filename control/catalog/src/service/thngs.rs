//! Thngs.

use crate::service::access::Caller;
use shared::id::{ProductId, ThngId};
use tracing::instrument;

use super::{
    ChangedThng, Core,
    access::require,
    bulk::{self, AfterCommit, Bulk, CreateEach},
    collections::members::set_collections_of,
    locations,
    named::{self, is_seen},
    operations::operations,
    properties,
    scopes::scopes_for,
    user_rules, with_properties,
};
use crate::{
    domain::{
        access::{Actor, ActorKind},
        authority::{AUTHORITY_TAGS, refusal},
        common::Common,
        grant::Grant,
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{self, Thngs},
            Verb,
        },
        public_write::confine_thng,
        resource::{Product, Thng, ThngChange},
    },
    error::{CatalogError, ServiceError},
    store::{self, Tx, collection_members, documents, keys, quotas, tenants, thng_locations},
};

/// Makes a Thng; `project` is what `?project=` names.
///
/// # Errors
/// The key lacks the permission, the name is missing, the product does not exist, or another Thng of the product
/// has its serial.
#[instrument(skip_all)]
pub async fn create(
    core: &Core,
    caller: &Caller,
    change: ThngChange,
    project: Option<&str>,
) -> Result<Thng, ServiceError> {
    let _ = require(caller, Verb::Create, Thngs)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let thng = create_in(core, &mut tx, caller, change, project).await?;
    tx.commit().await?;
    Ok(thng)
}

/// [`create`] within a transaction.
pub async fn create_in(
    core: &Core,
    tx: &mut Tx,
    actor: &Actor,
    mut change: ThngChange,
    project: Option<&str>,
) -> Result<Thng, ServiceError> {
    let grant = require(actor, Verb::Create, Thngs)?;
    let now = core.clock.now();
    let id = ThngId::new(now.0, core.random16()?);
    let name = change.name.take().ok_or_else(super::name_required)?;
    user_rules::check_creation(tx, actor).await?;
    check_product_right(actor, None, &change)?;
    user_rules::check_write::<Thng>(tx, actor, None, &mut change.details.common).await?;
    user_rules::check_links(actor, change.details.links.is_some())?;
    let asked = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(tx, actor, &grant, asked, project).await?;
    check_product(tx, actor, change.product).await?;
    let new = Thng::new(id, name, change.product, change.details, now);
    let mut thng = documents::insert(tx, actor.account, new).await?;
    if let Some(wanted) = change.collections {
        set_collections_of(tx, actor, id, &[], &wanted).await?;
        thng.collections = wanted;
    }
    if let Some(location) = change.location {
        let locations = vec![("location".to_owned(), location)];
        locations::record(tx, actor.account, &mut thng, locations, now).await?;
    }
    properties::write_initial(tx, actor, id.as_str(), change.properties, now).await?;
    thng.properties = properties::shown(tx, actor, id.as_str()).await?;
    let is_marked = has_new_mark(&Common::default(), &thng.details.common);
    let has_new_links = !thng.links().is_empty();
    let is_relinked = has_new_links || (thng.product.is_some() && thng.serial().is_some());
    if is_marked || is_relinked {
        let (product, is_renamed, is_moved) = (thng.product, false, false);
        let changed =
            ChangedThng { id, product, is_renamed, is_moved, is_marked, is_relinked, has_new_links };
        // Nothing points at it yet. Edges read its Digital Link a little later, or when it is asked for.
        let _ = core.dependents.thng_changed(tx, actor.account, changed, now).await?;
    }
    Ok(thng)
}

operations!(Thng, ThngChange, with_properties);

impl CreateEach<Core> for Thng {
    type Change = ThngChange;

    async fn create_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        change: ThngChange,
        project: Option<&str>,
    ) -> Result<Self, ServiceError> {
        create_in(core, tx, actor, change, project).await
    }
}

impl Bulk<Core> for Thng {
    type Change = ThngChange;

    async fn update_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        mut change: ThngChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        change.details.common.scopes = grant.scopes_of_change(change.details.common.scopes.take());
        let stored: Thng = named::find_locked(tx, actor, grant, reference).await?;
        let id = stored.id;
        if actor.kind == ActorKind::Thng {
            let account = tenants::find_account(tx, actor.account).await?;
            let writable = account.map(|account| account.thng_writable_custom_fields).unwrap_or_default();
            user_rules::forbid(confine_thng(&stored, &mut change, &writable))?;
        }
        check_product_right(actor, Some(&stored), &change)?;
        user_rules::check_write(tx, actor, Some(&stored), &mut change.details.common).await?;
        // A client that sends back what it read may name a product that was deleted meanwhile.
        if change.product != stored.product {
            check_product(tx, actor, change.product).await?;
        }
        let (product, name, now) = (stored.product, stored.name.clone(), core.clock.now());
        let (common, links) = (stored.details.common.clone(), stored.details.links.clone());
        let serial = stored.serial().map(str::to_owned);
        let collections = stored.collections.clone();
        let mut thng = stored.apply(change, now);
        user_rules::check_links(actor, thng.details.links != links)?;
        set_collections_of(tx, actor, id, &collections, &thng.collections).await?;
        documents::update(tx, actor.account, &thng).await?;
        thng.properties = properties::shown(tx, actor, id.as_str()).await?;
        // Tags such as `display` decide what its scans say.
        let is_marked = has_new_mark(&common, &thng.details.common);
        let changed = ChangedThng {
            id,
            product: thng.product,
            is_renamed: thng.name != name,
            is_moved: thng.product != product,
            is_marked,
            is_relinked: thng.details.links != links
                || thng.serial() != serial.as_deref()
                || thng.details.common.scopes != common.scopes,
            has_new_links: thng.details.links != links,
        };
        let followed = core.dependents.thng_changed(tx, actor.account, changed, now).await?;
        Ok((thng, AfterCommit::default().wake_edges(followed)))
    }

    async fn delete_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let stored: Thng = named::find_locked(tx, actor, grant, reference).await?;
        let id = stored.id;
        documents::delete::<Thng>(tx, actor.account, id).await?;
        store::properties::remove_all(tx, actor.account, id.as_str()).await?;
        collection_members::forget_thng(tx, actor.account, id).await?;
        thng_locations::delete(tx, actor.account, id, None).await?;
        let now = core.clock.now();
        keys::revoke_all(tx, actor.account, id.as_str(), now.0).await?;
        // What follows takes the order of changes, for which all accounts wait. It must not wait then for a request that
        // makes Things and holds the use of the account to its end.
        quotas::settle(tx).await?;
        let followed = core.dependents.thng_removed(tx, actor.account, id, stored.product, now).await?;
        Ok(properties::sweep_after(core, AfterCommit::default().wake_edges(followed).revoke_keys()))
    }
}

/// Whether two states of a Thng differ in a tag that verdicts depend on.
fn has_new_mark(before: &Common, after: &Common) -> bool {
    let holds = |common: &Common, tag: &str| common.tags.iter().flatten().any(|one| one == tag);
    AUTHORITY_TAGS.iter().any(|tag| holds(before, tag) != holds(after, tag))
}

/// Refuses to a user that is confined to its own to say what its Things are instances of.
fn check_product_right(
    actor: &Actor,
    stored: Option<&Thng>,
    change: &ThngChange,
) -> Result<(), ServiceError> {
    let is_moved = change.product.is_some() && change.product != stored.and_then(|stored| stored.product);
    let faults = (is_moved && actor.is_confined_user()).then(|| refusal("product"));
    user_rules::forbid(faults.into_iter().collect())
}

async fn check_product(tx: &mut Tx, actor: &Actor, product: Option<ProductId>) -> Result<(), ServiceError> {
    let Some(id) = product else { return Ok(()) };
    // A product that the key cannot see does not exist for it.
    let grant = require(actor, Verb::Read, Subject::Products).ok();
    let found: Option<Product> = documents::find(tx, actor.account, id).await?;
    let exists = found.zip(grant).is_some_and(|(product, grant)| is_seen(&product, &grant));
    if !exists {
        return Err(CatalogError::NoSuchProduct(id).into());
    }
    Ok(())
}
