//! Operators change their own passwords.

use serde_json::json;
use tracing::instrument;

use super::{
    OPERATOR, SignInState, about,
    access::{Caller, require},
    person,
    throttles::{SignInError, count, forget},
};
use crate::{
    domain::{
        access::hash_key,
        email::Email,
        operator::Operator,
        password::Password,
        password_body::PasswordChange,
        permission::{Subject::Operators, Verb},
        throttle::Throttle,
    },
    error::{ServiceError, SignInFault},
    store::{
        Ctx, Tx, keys,
        operator_codes::{RESETS, SIGN_IN_LINKS},
        operator_passwords, operators,
    },
};

/// Changes the password of the caller, and ends its sessions but that by which the request came.
///
/// No key sets the first one: a password that came from a key that leaked would work on when the key is revoked.
///
/// # Errors
/// The key is a program's; there is no password until now (409); it is wrong; [`SignInError::Passwords`]; or the new
/// password is common.
#[instrument(skip_all)]
pub async fn change(
    state: &SignInState,
    caller: &Caller,
    key: &str,
    change: PasswordChange,
) -> Result<(), SignInError> {
    let _ = require(caller, Verb::Update, Operators)?;
    let core = &*state.core;
    let operator = person(core, caller).await?;
    let stored = operator_passwords::find(&mut core.db.read().await?, operator.account, operator.id).await?;
    let Some(stored) = stored else {
        return Err(SignInFault::NoPassword.into());
    };
    check(state, caller, &operator, change.old, stored.clone()).await?;
    let place = core.capacity.password(caller)?;
    let new = state.passwords.hash_new(place, "newPassword", change.new, state.salt()?, about(&operator));
    let new = new.await?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let now = core.clock.now();
    let operator = operators::find_locked(&mut tx, operator.account, operator.id).await?;
    let operator = operator.ok_or(SignInFault::WrongPassword)?;
    // A concurrent reset wins: it proved access to the mailbox.
    let now_stored = operator_passwords::find(&mut tx, operator.account, operator.id).await?;
    if now_stored != Some(stored) {
        return Err(SignInFault::WrongPassword.into());
    }
    put(&mut tx, &operator, &new, now).await?;
    keys::end_sessions(&mut tx, operator.account, operator.id.as_str(), &hash_key(key), now.0).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// Stores a password, and notes that it was set. Codes of resets and links that sign in end.
pub(super) async fn put(
    tx: &mut Tx,
    operator: &Operator,
    password: &str,
    now: shared::time::UnixMillis,
) -> Result<(), ServiceError> {
    let email = Email::parse(&operator.email).map_err(|_| SignInFault::NoEmail)?;
    let owner = (operator.account, operator.id);
    operator_passwords::put(tx, owner, &email.folded(), password, now).await?;
    RESETS.delete_of(tx, owner.0, owner.1).await?;
    SIGN_IN_LINKS.delete_of(tx, owner.0, owner.1).await?;
    tx.note(owner.0, (OPERATOR, owner.1.as_str()), || (None, Some(json!({"changed": ["password"]}))));
    Ok(())
}

/// Checks the password of somebody who is signed in, before something that weakens or changes the protection.
///
/// # Errors
/// It is wrong, or [`SignInError::Passwords`].
pub(super) async fn check_own(
    state: &SignInState,
    caller: &Caller,
    operator: &Operator,
    password: Password,
) -> Result<(), SignInError> {
    let mut conn = state.core.db.read().await?;
    let stored = operator_passwords::find(&mut conn, operator.account, operator.id).await?;
    drop(conn);
    check(state, caller, operator, password, stored.ok_or(SignInFault::WrongPassword)?).await
}

/// Not counted with sign-ins: guesses by strangers must not block the operator's own changes.
async fn check(
    state: &SignInState,
    caller: &Caller,
    operator: &Operator,
    password: Password,
    stored: String,
) -> Result<(), SignInError> {
    let core = &*state.core;
    let tries = Throttle::Own(operator.id.as_str());
    let place = core.capacity.password(caller)?;
    count(state, tries).await?;
    if !state.passwords.verify(place, password, Some(stored)).await? {
        return Err(SignInFault::WrongPassword.into());
    }
    let mut tx = core.db.begin(&Ctx::default()).await?;
    forget(state, &mut tx, tries).await?;
    tx.commit().await?;
    Ok(())
}
