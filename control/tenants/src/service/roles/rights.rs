//! What roles allow, and what a caller may give: nobody gives more than the own roles allow.

use shared::{
    id::{AccountId, OperatorId, RoleId},
    time::UnixMillis,
};

use crate::{
    domain::{
        access::{Actor, ActorKind, UserRights},
        custom_role::{Role, RoleKind},
        limits::shorten,
        permission::{Subject::Access, reach},
        role,
        subject::Permissions,
    },
    error::{ServiceError, TenantsError},
    store::{Conn, Tx, accounts, documents, operator_keys, operators},
};

/// What some roles of operators allow together.
pub(crate) async fn permissions_of(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<Permissions, ServiceError> {
    let mut all = Permissions::default();
    for id in ids {
        all = all.with(find_permissions(conn, account, id).await?.unwrap_or_default());
    }
    Ok(all)
}

async fn find_permissions(
    conn: &mut Conn,
    account: AccountId,
    id: &str,
) -> Result<Option<Permissions>, ServiceError> {
    if let Some(built_in) = role::permissions_of(id) {
        return Ok(Some(built_in));
    }
    let Ok(parsed) = id.parse::<RoleId>() else { return Ok(None) };
    let found: Option<Role> = documents::find(conn, account, parsed).await?;
    Ok(found.filter(|role| role.kind == RoleKind::Operator).map(|role| role.permissions()))
}

/// Locks the account and checks the caller's roles again: they may have changed since its key was looked up.
///
/// # Errors
/// 403 if its roles allow less now, or it was removed.
pub async fn lock_with_rights(tx: &mut Tx, caller: &Actor) -> Result<(), ServiceError> {
    accounts::lock(tx, caller.account).await?;
    let own = match caller.id.parse() {
        Ok(id) => operators::find(tx, caller.account, id).await?,
        Err(_) => None,
    };
    if let Some(own) = own {
        let may = permissions_of(tx, caller.account, &own.roles).await?;
        if may.cover(&caller.permissions) && (caller.kind != ActorKind::Operator || own.projects.is_none()) {
            return Ok(());
        }
    }
    Err(TenantsError::RolesChanged.into())
}

/// Checks roles that a caller gives to an operator: each exists, and allows no more than the caller's own.
///
/// # Errors
/// 400 that names one that does not exist, or 403.
pub(crate) async fn check_roles(
    tx: &mut Tx,
    caller: &Actor,
    ids: Option<&[String]>,
) -> Result<(), ServiceError> {
    for id in ids.unwrap_or_default() {
        let Some(allowed) = find_permissions(tx, caller.account, id).await? else {
            return Err(TenantsError::NoOperatorRole(shorten(id).to_owned()).into());
        };
        refuse_more(caller, allowed, "You may not give what you do not have")?;
    }
    Ok(())
}

/// Checks the role that an application gives its users.
///
/// # Errors
/// 400 where the account has no such role for users.
pub async fn check_user_role(tx: &mut Tx, account: AccountId, id: Option<&str>) -> Result<(), ServiceError> {
    let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(()) };
    let found: Option<Role> = match id.parse() {
        Ok(parsed) => documents::find(tx, account, parsed).await?,
        Err(_) => None,
    };
    if found.is_some_and(|role| role.kind == RoleKind::User) {
        return Ok(());
    }
    Err(TenantsError::NoUserRole(shorten(id).to_owned()).into())
}

/// Refuses a role that allows operators more than the caller may do; what users may do is bounded by their account.
pub(super) fn refuse_role(caller: &Actor, role: &Role) -> Result<(), ServiceError> {
    match role.kind {
        RoleKind::Operator => {
            refuse_more(caller, role.permissions(), "You may not give what you do not have")
        }
        RoleKind::User => Ok(()),
    }
}

/// Refuses to show the secret key of an application to an operator whose roles allow less than that key.
pub fn refuse_less_than_application(caller: &Actor) -> Result<(), ServiceError> {
    let of_owner = role::of_owner();
    let theirs = Permissions::of(|verb, subject| {
        of_owner.allow(verb, subject)
            && reach(ActorKind::TrustedApp, UserRights::Own, verb, subject).is_some()
            && subject != Access
    });
    refuse_more(caller, theirs, "This key may do what you may not")
}

/// Refuses to raise operators who have a valid key that was made by somebody with fewer rights than they would get: the
/// maker may have kept a copy. Removed operators count as having no rights.
///
/// # Errors
/// 409 that names such a key.
pub(crate) async fn refuse_keys_of_others(
    tx: &mut Tx,
    caller: &Actor,
    raised: &[(OperatorId, Permissions)],
    now: UnixMillis,
) -> Result<(), ServiceError> {
    for key in operator_keys::list_valid(tx, caller.account, now).await? {
        let owner = raised.iter().find(|(id, _)| id.as_str() == key.operator);
        let (Some((owner, permissions)), Some(maker)) = (owner, &key.created_by) else { continue };
        if *maker == caller.id || maker == owner.as_str() {
            continue;
        }
        let maker = match maker.parse() {
            Ok(id) => operators::find(tx, caller.account, id).await?,
            Err(_) => None,
        };
        let may = match maker.filter(|maker| maker.projects.is_none()) {
            Some(maker) => permissions_of(tx, caller.account, &maker.roles).await?,
            None => Permissions::default(),
        };
        if !may.cover(permissions) {
            return Err(TenantsError::KeyOfLesserMaker { label: key.label.clone(), owner: *owner }.into());
        }
    }
    Ok(())
}

/// Refuses permissions beyond the caller's; `why` stands before the first of them.
pub(crate) fn refuse_more(
    caller: &Actor,
    theirs: Permissions,
    why: &'static str,
) -> Result<(), ServiceError> {
    match theirs.without(caller.permissions).texts().into_iter().next() {
        Some(permission) => Err(TenantsError::BeyondOwnRights { why, permission }.into()),
        None => Ok(()),
    }
}
