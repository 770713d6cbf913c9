//! Logins and logouts of users.

use tracing::instrument;

use super::{
    Core,
    access::{Caller, require},
    attempts::{AttemptError, Subject, count_password_attempt},
    users::{LoggedIn, Users, add_key, application, begin},
};
use crate::{
    domain::{
        access::hash_key,
        app_user::{Credentials, UserStatus},
        attempts::AttemptKind,
        permission::{Subject::Access, Verb},
    },
    error::{ApplicationsError, ServiceError},
    store::{app_users, keys},
};

// Spec gap: the answer to a failed login is not shown. An unknown address, a wrong password and a user who
// was never activated get one answer, after the same work, and are throttled down alike.
/// Logs a user in by e-mail and password; each login has a key of its own.
///
/// # Errors
/// `Code::LoginFailed`, [`AttemptError::Passwords`] whatever the password is, or the key is not an application's.
#[instrument(skip_all)]
pub async fn login(
    users: &Users,
    caller: &Caller,
    credentials: Credentials,
) -> Result<LoggedIn, AttemptError> {
    let core = &*users.core;
    let (project, application) = application(caller)?;
    let failed = || ApplicationsError::WrongLogin;
    let folded = credentials.email.folded();
    let place = core.capacity.password(caller)?;
    let subject = Subject::new(core, AttemptKind::Password, (caller.account, project), &folded);
    {
        let _place = core.capacity.write(caller)?;
        count_password_attempt(core, &subject).await?;
    }
    let found = {
        let mut conn = core.db.read().await?;
        app_users::find_login(&mut conn, project, &folded).await?
    };
    let (id, status, stored) = match found {
        Some(found) => (Some(found.id), Some(found.status), found.password),
        None => (None, None, None),
    };
    let is_right = users.passwords.verify(place, credentials.password, stored.clone()).await?;
    let id = id.filter(|_| is_right && status == Some(UserStatus::Active)).ok_or_else(failed)?;
    let _place = core.capacity.write(caller)?;
    let mut tx = begin(core, caller, application).await?;
    let user = app_users::find_locked(&mut tx, caller.account, id).await?.ok_or_else(failed)?;
    // The password was changed while it was compared, which ends all logins: this one must not outlive that.
    let now_stored = app_users::find_password(&mut tx, caller.account, id).await?;
    if now_stored.map(|(_, password)| password) != stored {
        return Err(failed().into());
    }
    let key = add_key(core, &mut tx, caller, &user).await?;
    subject.forget(&mut tx).await?;
    tx.commit().await?;
    Ok(LoggedIn { user, key })
}

/// Ends the key of a user by which the request came; the others of the user stay.
///
/// # Errors
/// The key is not a user's.
#[instrument(skip_all)]
pub async fn logout(core: &Core, caller: &Caller, key: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Update, Access)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    keys::revoke(&mut tx, &hash_key(key), core.clock.now().0).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}
