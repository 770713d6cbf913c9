//! Activation of users by the code of their registration.

use serde_json::json;
use shared::id::{AccountId, ApplicationId, UserId};
use subtle::ConstantTimeEq;
use tracing::instrument;

use super::{
    Core,
    access::Caller,
    user_passwords,
    users::{KIND, LoggedIn, Users, add_key, application, begin},
};
use crate::{
    domain::{
        access::hash_key,
        app_user::{AppUser, UserStatus},
        limits::shorten,
        user_codes::Activation,
        user_registration::UserRegistration,
    },
    error::{ApplicationsError, ServiceError},
    store::{Conn, app_users, tenants},
};

/// Activates a user by the code of its registration, with another password if one is given, and logs it in.
///
/// # Errors
/// 404 for a user of another application; for a wrong code 400, or 404 where it must not tell whether there is the user.
/// The password is common.
#[instrument(skip_all)]
pub async fn activate(
    users: &Users,
    caller: &Caller,
    id: &str,
    activation: Activation,
) -> Result<LoggedIn, ServiceError> {
    let core = &*users.core;
    let (_, application) = application(caller)?;
    let parsed: UserId = id.parse().map_err(|_| wrong_code(id))?;
    let code = SentCode { application, id: parsed, hash: hash_key(&activation.code) };
    let password = match activation.password {
        None => None,
        Some(password) => {
            // Hashing a password costs much: not without a code that is right so far.
            let known = {
                let mut conn = core.db.read().await?;
                let user = app_users::find(&mut conn, caller.account, parsed).await?;
                code.check(core, &mut conn, caller.account, user).await?
            };
            let place = core.capacity.password(caller)?;
            Some(user_passwords::hash(users, place, "password", password, &known).await?)
        }
    };
    let _place = core.capacity.write(caller)?;
    let mut tx = begin(core, caller, application).await?;
    let user = app_users::find_locked(&mut tx, caller.account, parsed).await?;
    let user = code.check(core, &mut tx, caller.account, user).await?;
    let user = AppUser { status: UserStatus::Active, stamp: user.stamp.touch(core.clock.now()), ..user };
    if let Some(password) = password {
        app_users::set_password(&mut tx, parsed, &password, user.stamp.updated_at).await?;
    }
    app_users::activate(&mut tx, parsed, user.stamp.updated_at).await?;
    tx.note(caller.account, (KIND, id), || (None, Some(json!({"status": user.status.as_str()}))));
    let key = add_key(core, &mut tx, caller, &user).await?;
    tx.commit().await?;
    Ok(LoggedIn { user, key })
}

/// A code as somebody sent it for a user.
struct SentCode {
    application: ApplicationId,
    id: UserId,
    hash: [u8; 32],
}

impl SentCode {
    /// The user, if the code is right. Account and code are always read, so that the time of the answer does not reveal
    /// whether the user exists.
    async fn check(
        &self,
        core: &Core,
        conn: &mut Conn,
        account: AccountId,
        user: Option<AppUser>,
    ) -> Result<AppUser, ServiceError> {
        let not_found = || wrong_code(self.id.as_str());
        let kind = tenants::find_account(conn, account).await?.map(|account| account.user_registration);
        let expected = app_users::find_activation(conn, self.id).await?;
        let user = user.filter(|user| user.app == self.application).ok_or_else(not_found)?;
        let now = core.clock.now();
        let is_right = expected.is_some_and(|(hash, until)| {
            bool::from(self.hash[..].ct_eq(&hash)) && until.is_none_or(|until| now < until)
        });
        match kind.unwrap_or_default() {
            _ if is_right => Ok(user),
            UserRegistration::Mail => Err(not_found()),
            UserRegistration::Caller => Err(ApplicationsError::WrongActivationCode.into()),
        }
    }
}

fn wrong_code(id: &str) -> ServiceError {
    ApplicationsError::WrongUserOrCode(shorten(id).to_owned()).into()
}
