//! Roles: those that every account has, and those that it makes.

mod rights;

use shared::{
    entity_tag::EntityTag,
    id::{AccountId, RoleId},
};
use tracing::instrument;

use self::rights::refuse_role;
pub(crate) use self::rights::{check_roles, permissions_of, refuse_keys_of_others, refuse_more};
pub use self::rights::{check_user_role, lock_with_rights, refuse_less_than_application};
use super::{
    Core,
    access::{Caller, require},
    named::{admitted, checked, tag_of},
};
use crate::{
    domain::{
        access::Actor,
        common::Stamp,
        custom_role::{PathAccess, Role, RoleChange, RoleKind},
        grant::Limit,
        limits::shorten,
        listing::ListRequest,
        page::{Page, PageRequest, SortOrder},
        permission::{Subject::Roles, Verb},
        role::{self, BUILT_IN, BuiltIn, Group},
        subject::Permissions,
    },
    error::{ServiceError, TenantsError},
    store::{Conn, Tx, documents, listing::Selection, operators, roles as store},
};

/// Most roles that an account makes.
const MAX_ROLES: u32 = 200;

/// A role of either sort.
#[derive(Debug, Clone)]
pub enum AnyRole {
    /// One of every account.
    BuiltIn(&'static BuiltIn),
    /// One that the account made.
    Own(Box<Role>),
}

impl AnyRole {
    /// What it allows.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        match self {
            Self::BuiltIn(role) => role::permissions_of(role.name).unwrap_or_default(),
            Self::Own(role) => role.permissions(),
        }
    }

    /// Names the state that it is in.
    #[must_use]
    pub fn tag(&self) -> EntityTag {
        match self {
            Self::BuiltIn(role) => EntityTag::of(&role.name),
            Self::Own(role) => tag_of(&**role),
        }
    }
}

/// Creates a role.
///
/// # Errors
/// The caller may not, or the role would allow more than its own (403).
#[instrument(skip_all)]
pub async fn create(core: &Core, caller: &Caller, change: RoleChange) -> Result<Role, ServiceError> {
    let _ = require(caller, Verb::Create, Roles)?;
    let now = core.clock.now();
    let (id, kind) = (RoleId::new(now.0, core.random16()?), change.kind);
    let mut tx = core.db.begin(&caller.ctx).await?;
    lock_with_rights(&mut tx, caller).await?;
    if list_own(&mut tx, caller.account).await?.len() >= MAX_ROLES as usize {
        return Err(TenantsError::TooManyRoles { most: MAX_ROLES }.into());
    }
    let blank = Role { id, stamp: Stamp::new(now), name: String::new(), kind, details: <_>::default() };
    let new = Role { stamp: Stamp::new(now), ..blank.apply(change, now) };
    refuse_role(caller, &new)?;
    let role = documents::insert(&mut tx, caller.account, new).await?;
    tx.commit().await?;
    Ok(role)
}

/// Lists the roles that meet `keep`: those of every account first, then those that the account made, by age. A user of an
/// application sees its own.
///
/// # Errors
/// The caller may not.
#[instrument(skip_all)]
pub async fn list(
    core: &Core,
    actor: &Actor,
    page: PageRequest,
    keep: impl Fn(&AnyRole) -> bool,
) -> Result<Page<AnyRole>, ServiceError> {
    let grant = require(actor, Verb::List, Roles)?;
    let mut conn = core.db.read().await?;
    if *grant.limit() != Limit::Account {
        let own = of_application(&mut conn, actor).await?.map(|role| AnyRole::Own(Box::new(role)));
        return Ok(Page::of_list(own.into_iter().filter(keep).collect(), page));
    }
    let own = list_own(&mut conn, actor.account).await?;
    let all =
        BUILT_IN.iter().map(AnyRole::BuiltIn).chain(own.into_iter().map(|role| AnyRole::Own(Box::new(role))));
    Ok(Page::of_list(all.filter(keep).collect(), page))
}

/// Reads a role; with `kind`, only a role of that kind.
///
/// # Errors
/// There is none.
#[instrument(skip_all)]
pub async fn read(
    core: &Core,
    actor: &Actor,
    id: &str,
    kind: Option<RoleKind>,
) -> Result<AnyRole, ServiceError> {
    let grant = require(actor, Verb::Read, Roles)?;
    if let Some(built_in) = BUILT_IN.iter().find(|role| role.name == id) {
        return Ok(AnyRole::BuiltIn(built_in));
    }
    let parsed: RoleId = id.parse().map_err(|_| not_found(id))?;
    let found: Option<Role> = documents::find(&mut core.db.read().await?, actor.account, parsed).await?;
    let found = found.filter(|role| is_of(role, kind));
    Ok(AnyRole::Own(Box::new(admitted(found, &grant, id)?)))
}

/// Merges the members given into a role that the account made. Whoever has it may do what it allows from now on.
///
/// # Errors
/// There is none, it is one of every account (409), it allows or would allow more than the caller's own (403), or a holder
/// would gain rights while it has a key made by somebody with fewer (409).
#[instrument(skip_all)]
pub async fn update(
    core: &Core,
    caller: &Caller,
    id: &str,
    kind: Option<RoleKind>,
    change: RoleChange,
) -> Result<Role, ServiceError> {
    let now = core.clock.now();
    rewrite(core, caller, id, |role| match is_of(&role, kind) {
        true => Ok(role.apply(change, now)),
        false => Err(not_found(id)),
    })
    .await
}

/// Gives a group of permissions to a role of operators, or takes it.
///
/// # Errors
/// As [`update`], where there is no such group, and where the role is for users (409).
#[instrument(skip_all)]
pub async fn switch(
    core: &Core,
    caller: &Caller,
    id: &str,
    group: &str,
    is_enabled: bool,
) -> Result<(Role, &'static Group), ServiceError> {
    let now = core.clock.now();
    let _ = require(caller, Verb::Update, Roles)?;
    let group = find_group(group)?;
    let change = |role: Role| match role.kind {
        RoleKind::Operator => Ok(role.switch(group, is_enabled, now)),
        RoleKind::User => Err(TenantsError::RoleOfUsers.into()),
    };
    Ok((rewrite(core, caller, id, change).await?, group))
}

/// The group of permissions that a path names.
///
/// # Errors
/// There is none.
pub fn find_group(name: &str) -> Result<&'static Group, ServiceError> {
    role::find_group(name).ok_or_else(|| ServiceError::not_found("permission", shorten(name)))
}

/// Says what the users who have a role may do, path by path.
///
/// # Errors
/// As [`update`], and where the role is for operators (409).
#[instrument(skip_all)]
pub async fn set_paths(
    core: &Core,
    caller: &Caller,
    id: &str,
    paths: Vec<PathAccess>,
) -> Result<Role, ServiceError> {
    let now = core.clock.now();
    rewrite(core, caller, id, |mut role| match role.kind {
        RoleKind::User => {
            role.details.paths = paths;
            role.stamp = role.stamp.touch(now);
            Ok(role)
        }
        RoleKind::Operator => Err(TenantsError::RoleOfOperators.into()),
    })
    .await
}

/// Deletes a role that the account made.
///
/// # Errors
/// There is none, it is one of every account, or somebody has it (409).
#[instrument(skip_all)]
pub async fn delete(
    core: &Core,
    caller: &Caller,
    id: &str,
    kind: Option<RoleKind>,
) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Delete, Roles)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    lock_with_rights(&mut tx, caller).await?;
    let role = find_own(&mut tx, caller, id).await?;
    if !is_of(&role, kind) {
        return Err(not_found(id));
    }
    refuse_role(caller, &role)?;
    let users = operators::count_with_role(&mut tx, caller.account, id).await?
        + store::count_applications(&mut tx, caller.account, id).await?;
    if users > 0 {
        return Err(TenantsError::RoleInUse { users }.into());
    }
    documents::delete::<Role>(&mut tx, caller.account, role.id).await?;
    tx.commit().await?;
    Ok(())
}

async fn rewrite(
    core: &Core,
    caller: &Caller,
    id: &str,
    change: impl FnOnce(Role) -> Result<Role, ServiceError>,
) -> Result<Role, ServiceError> {
    let _ = require(caller, Verb::Update, Roles)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    lock_with_rights(&mut tx, caller).await?;
    let found = find_own(&mut tx, caller, id).await?;
    refuse_role(caller, &found)?;
    let before = found.permissions();
    let role = change(found)?;
    refuse_role(caller, &role)?;
    if role.kind == RoleKind::Operator && !before.cover(&role.permissions()) {
        let mut raised = Vec::new();
        for holder in operators::list(&mut tx, caller.account).await? {
            if holder.roles.iter().any(|of| of == id) {
                let others = permissions_of(&mut tx, caller.account, &holder.roles).await?;
                raised.push((holder.id, others.with(role.permissions())));
            }
        }
        refuse_keys_of_others(&mut tx, caller, &raised, core.clock.now()).await?;
    }
    documents::update(&mut tx, caller.account, &role).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(role)
}

/// A role that the account made, with a lock until the transaction ends.
async fn find_own(tx: &mut Tx, caller: &Caller, id: &str) -> Result<Role, ServiceError> {
    if role::permissions_of(id).is_some() {
        return Err(TenantsError::BuiltInRole(id.to_owned()).into());
    }
    let parsed: RoleId = id.parse().map_err(|_| not_found(id))?;
    let found: Option<Role> = documents::find_locked(tx, caller.account, parsed).await?;
    checked(tx, found.ok_or_else(|| not_found(id))?)
}

/// The role that the application of a user gives it.
async fn of_application(conn: &mut Conn, actor: &Actor) -> Result<Option<Role>, ServiceError> {
    let Some(app) = actor.app else { return Ok(None) };
    let role = store::find_of_application(conn, actor.account, app).await?;
    Ok(match role.and_then(|id| id.parse::<RoleId>().ok()) {
        Some(id) => documents::find(conn, actor.account, id).await?,
        None => None,
    })
}

async fn list_own(conn: &mut Conn, account: AccountId) -> Result<Vec<Role>, ServiceError> {
    let page = PageRequest { per_page: MAX_ROLES, sort: SortOrder::Ascending, after: None, number: 1 };
    let request = ListRequest { page, ..ListRequest::default() };
    let selection = Selection { account, limit: &Limit::Account, request: &request, within: &[] };
    Ok(documents::list(conn, &selection).await?.items)
}

fn is_of(role: &Role, kind: Option<RoleKind>) -> bool {
    kind.is_none_or(|kind| role.kind == kind)
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("role", shorten(id))
}
