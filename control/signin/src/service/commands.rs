//! Operators, directly in the database: for commands, which need no key. What they do is noted as the command line's.

use serde_json::json;
use shared::{
    id::{AccountId, OperatorId},
    time::{Clock, UnixMillis},
};
use tenants::error::TenantsError;

use super::{
    OPERATOR, Random,
    access::{KNOWN_FOR, new_key},
    operators::keep_owner,
    resets::RESET_MS,
};
use crate::{
    domain::{
        access::hash_key,
        email::Email,
        operator::{INVITATION_MS, Invitation, Operator, OperatorDetails, OperatorKind},
        role,
    },
    error::{ServiceError, SignInFault},
    store::{
        Conn, Ctx, Db, StoreError, Tx, accounts, keys, operator_authenticators, operator_codes::RESETS,
        operator_passwords, operators as store, recovery_codes,
    },
};

/// Most operators of an account.
const MAX_OPERATORS: usize = 1_000;

/// An operator as a command shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The operator.
    pub operator: Operator,
    /// Whether it has a password.
    pub has_password: bool,
    /// Whether a second factor is on.
    pub has_second_factor: bool,
}

/// The operators of an account, oldest first; of the first owner's if none is given.
///
/// # Errors
/// There is no such account, or no owner yet.
pub async fn list(db: &Db, account: Option<AccountId>) -> Result<Vec<Listed>, ServiceError> {
    let mut conn = db.read().await?;
    let account = account_or_first(&mut conn, account).await?;
    let listed = store::list(&mut conn, account).await?;
    let passwords = operator_passwords::list(&mut conn, account).await?;
    let authenticators = operator_authenticators::list(&mut conn, account).await?;
    let listed = listed.into_iter().map(|operator| Listed {
        has_password: passwords.contains(&operator.id),
        has_second_factor: authenticators.contains(&operator.id),
        operator,
    });
    Ok(listed.collect())
}

/// Invites somebody with a role that every account has; returns the code of the invitation.
///
/// # Errors
/// There is no such role (400), or the address has access (409).
pub async fn invite(
    db: &Db,
    (clock, random): (&dyn Clock, &dyn Random),
    account: Option<AccountId>,
    email: &Email,
    role: &str,
) -> Result<String, ServiceError> {
    if role::permissions_of(role).is_none() {
        let known = role::BUILT_IN.iter().map(|role| role.name).collect::<Vec<_>>().join(", ");
        return Err(SignInFault::NoSuchRole { role: role.to_owned(), known }.into());
    }
    let (code, now, mut id) = (new_key(random, "")?, clock.now(), [0; 16]);
    random.fill(&mut id)?;
    let mut tx = db.begin(&Ctx::of_command("operators invite", now)).await?;
    let account = account_or_first(&mut tx, account).await?;
    accounts::lock(&mut tx, account).await?;
    let others = store::list(&mut tx, account).await?;
    if others.iter().any(|other| other.email.to_lowercase() == email.folded()) {
        return Err(SignInFault::EmailTaken.into());
    }
    if others.len() >= MAX_OPERATORS {
        return Err(TenantsError::TooManyOperators { most: MAX_OPERATORS }.into());
    }
    let until = UnixMillis(now.0.saturating_add(INVITATION_MS));
    let operator = Operator {
        id: OperatorId::new(now.0, id),
        account,
        kind: OperatorKind::Person,
        email: email.as_str().to_owned(),
        first_name: String::new(),
        last_name: String::new(),
        roles: vec![role.to_owned()],
        projects: None,
        invitation: Some(Invitation { code: hash_key(&code), until }),
        details: OperatorDetails::default(),
        created_at: now,
        updated_at: now,
    };
    store::insert(&mut tx, &operator).await?;
    tx.commit().await?;
    Ok(code)
}

/// Removes an operator with its keys and sessions, once no process takes these any more.
///
/// # Errors
/// Nobody has the address, or nobody else would be owner (409).
pub async fn remove(
    db: &Db,
    clock: &dyn Clock,
    account: Option<AccountId>,
    email: &Email,
) -> Result<(), ServiceError> {
    let now = clock.now();
    let mut tx = db.begin(&Ctx::of_command("operators remove", now)).await?;
    let account = account_or_first(&mut tx, account).await?;
    accounts::lock(&mut tx, account).await?;
    let found = find_locked(&mut tx, account, email).await?;
    keys::revoke_all(&mut tx, account, found.id.as_str(), now.0).await?;
    store::delete(&mut tx, &found).await?;
    if found.is_owner() {
        keep_owner(&mut tx, account, now).await?;
    }
    tx.commit().await?;
    tokio::time::sleep(KNOWN_FOR).await;
    Ok(())
}

/// Turns the second factor of an operator off who lost it, and ends its sessions; returns whether one was on.
///
/// # Errors
/// Nobody has the address.
pub async fn reset_second_factor(
    db: &Db,
    clock: &dyn Clock,
    account: Option<AccountId>,
    email: &Email,
) -> Result<bool, ServiceError> {
    let now = clock.now();
    let mut tx = db.begin(&Ctx::of_command("operators reset-second-factor", now)).await?;
    let account = account_or_first(&mut tx, account).await?;
    let found = find_locked(&mut tx, account, email).await?;
    let authenticator = operator_authenticators::find_locked(&mut tx, account, found.id).await?;
    // One that was begun only is not on.
    let was_on = authenticator.is_some_and(|found| found.is_confirmed);
    if was_on {
        operator_authenticators::delete(&mut tx, account, found.id).await?;
        recovery_codes::delete(&mut tx, account, found.id).await?;
        keys::end_sessions(&mut tx, account, found.id.as_str(), &[], now.0).await?;
        let what = || (None, Some(json!({"secondFactor": "off"})));
        tx.note(account, (OPERATOR, found.id.as_str()), what);
    }
    tx.commit().await?;
    tokio::time::sleep(KNOWN_FOR).await;
    Ok(was_on)
}

/// Makes a code by which an operator sets a password, be it the first one; it works once, within an hour.
///
/// # Errors
/// Nobody has the address, or whoever has it was invited only (409).
pub async fn reset_password(
    db: &Db,
    (clock, random): (&dyn Clock, &dyn Random),
    account: Option<AccountId>,
    email: &Email,
) -> Result<String, ServiceError> {
    let (code, now) = (new_key(random, "")?, clock.now());
    let mut tx = db.begin(&Ctx::of_command("operators reset-password", now)).await?;
    let account = account_or_first(&mut tx, account).await?;
    let found = find_locked(&mut tx, account, email).await?;
    if found.invitation.is_some() {
        return Err(SignInFault::InvitationOpen.into());
    }
    let until = UnixMillis(now.0.saturating_add(RESET_MS));
    RESETS.insert(&mut tx, &hash_key(&code), account, found.id, until).await?;
    let what = || (None, Some(json!({"passwordReset": "requested"})));
    tx.note(account, (OPERATOR, found.id.as_str()), what);
    tx.commit().await?;
    Ok(code)
}

async fn find_locked(tx: &mut Tx, account: AccountId, email: &Email) -> Result<Operator, ServiceError> {
    let none = || ServiceError::not_found("operator", email.as_str());
    let listed = store::list(tx, account).await?;
    let id = listed.into_iter().find(|one| one.email.to_lowercase() == email.folded()).map(|one| one.id);
    store::find_locked(tx, account, id.ok_or_else(none)?).await?.ok_or_else(none)
}

/// The account that is named, or the first one.
///
/// # Errors
/// There is no such account, or no owner yet.
async fn account_or_first(conn: &mut Conn, account: Option<AccountId>) -> Result<AccountId, ServiceError> {
    if let Some(account) = account {
        let is_there = accounts::exists(conn, account).await?;
        return if is_there { Ok(account) } else { Err(ServiceError::not_found("account", account)) };
    }
    let first = accounts::find_first_owner(conn).await?;
    let none = || ServiceError::Store(StoreError::Row("there is no owner yet".to_owned()));
    first.map(|(_, account)| account).ok_or_else(none)
}
