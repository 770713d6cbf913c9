//! Registration of users, and their activation.

use std::net::IpAddr;

use mail::{Mail, templates};
use serde_json::json;
use shared::{id::UserId, time::UnixMillis};
use tracing::instrument;

use super::{
    Core,
    access::{Caller, new_key},
    attempts::{AttemptError, count_mail, count_mailbox},
    users::{KIND, LoggedIn, Users, add_key, application, begin, note_new, page},
};
use crate::{
    domain::{
        access::hash_key,
        app_user::{AppUser, NewUser, UserDetails, UserStatus},
        attempts::AttemptKind,
        password::SALT_LEN,
        quota::Quota,
        user_codes::ACTIVATION_MS,
        user_registration::UserRegistration,
    },
    error::{ApplicationsError, ServiceError},
    store::{StoreError, Tx, app_users, password_resets, quotas, tenants},
};

/// What a registration gives; by mail it is the same whether the address was known or not.
pub struct Registered {
    /// Id of the user; of an address that was known, one that nobody has.
    pub id: UserId,
    /// The address as it was sent.
    pub email: String,
    /// The code that activates the user, where the account gives it to the caller.
    pub activation_code: Option<String>,
}

/// How users register in the account of a key.
pub async fn kind(users: &Users, caller: &Caller) -> Result<UserRegistration, ServiceError> {
    let mut conn = users.core.db.read().await?;
    let account = tenants::find_account(&mut conn, caller.account).await?;
    Ok(account.map(|account| account.user_registration).unwrap_or_default())
}

// Spec gap: whether one address may register twice is not shown: once per project, ignoring letter case.
/// Registers a user by e-mail and password; it may log in once it was activated. Registered again before that, with codes by
/// mail, it has no password: it is set at the activation, or by a reset.
///
/// # Errors
/// The key is not an application's. With codes by mail: no mail is sent by this server, [`AttemptError::Mails`],
/// [`AttemptError::Mailbox`], or the password is common. With codes for the caller: 409 when the project has the address.
#[instrument(skip_all)]
pub async fn register(
    users: &Users,
    caller: &Caller,
    new: NewUser,
    kind: UserRegistration,
    client: Option<IpAddr>,
) -> Result<Registered, AttemptError> {
    let core = &*users.core;
    let (project, application) = application(caller)?;
    let email = new.credentials.email;
    if kind == UserRegistration::Mail {
        check_mail(users, email.as_str())?;
    }
    let mut salt = [0; SALT_LEN];
    core.random.fill(&mut salt)?;
    let code = new_key(&*core.random, "")?;
    let details = UserDetails { email: Some(email.as_str().to_owned()), ..new.details };
    let place = core.capacity.password(caller)?;
    let password = match kind {
        UserRegistration::Mail => {
            let about = [&details.email, &details.first_name, &details.last_name];
            let about = about.into_iter().flatten().cloned().collect();
            users.passwords.hash_new(place, "password", new.credentials.password, salt, about).await?
        }
        UserRegistration::Caller => users.passwords.hash(place, new.credentials.password, salt).await?,
    };
    let now = core.clock.now();
    let row = app_users::NewRow {
        account: caller.account,
        id: UserId::new(now.0, core.random16()?),
        project,
        app: application,
        status: UserStatus::Inactive,
        folded: Some(email.folded()),
        password: Some(password),
        activation: Some((hash_key(&code), UnixMillis(now.0.saturating_add(ACTIVATION_MS)))),
        details: &details,
    };
    let registered =
        |activation_code| Registered { id: row.id, email: email.as_str().to_owned(), activation_code };
    let _place = core.capacity.write(caller)?;
    match kind {
        UserRegistration::Mail => {
            let done = registered(None);
            register_by_mail(users, caller, row, &code, client).await?;
            Ok(done)
        }
        UserRegistration::Caller => {
            let done = registered(Some(code));
            let mut tx = begin(core, caller, application).await?;
            let user = app_users::insert(&mut tx, row, now).await.map_err(|error| match error {
                StoreError::Unique(_) => ServiceError::from(ApplicationsError::EmailTaken),
                other => other.into(),
            })?;
            note_new(&mut tx, caller, &user);
            tx.commit().await?;
            Ok(done)
        }
    }
}

/// Mail must be sent, and the address take some.
fn check_mail(users: &Users, email: &str) -> Result<(), ApplicationsError> {
    if !users.outbox.is_on() {
        let so = "users can only be anonymous, unless the account sets userRegistration to caller";
        return Err(ApplicationsError::NoMail { so });
    }
    Mail::new(email, "", "").map(|_| ()).map_err(ApplicationsError::Email)
}

/// The answer does not depend on whether the address is known; the mailbox gets the code, or is told that it is known.
async fn register_by_mail(
    users: &Users,
    caller: &Caller,
    mut row: app_users::NewRow<'_>,
    code: &str,
    client: Option<IpAddr>,
) -> Result<(), AttemptError> {
    let core = &*users.core;
    let email = row.details.email.clone().unwrap_or_default();
    let folded = row.folded.clone().unwrap_or_default();
    let mut tx = begin(core, caller, row.app).await?;
    // Also of an address that is known: the answer would tell which are.
    quotas::require_room(&mut tx, caller.account, Quota::Users, core.clock.now()).await?;
    count_mailbox(core, &mut tx, caller.account, (AttemptKind::Registration, &folded)).await?;
    count_mail(core, &users.outbox, &mut tx, caller.account, AttemptKind::Registration, client).await?;
    let account = tenants::find_account(&mut tx, caller.account).await?;
    let name = account.map(|account| account.name).unwrap_or_default();
    let found = app_users::find_by_address_locked(&mut tx, row.project, &folded).await?;
    let mut to = email;
    let mail = match found {
        Some(user) if user.status != UserStatus::Inactive => {
            // To the stored spelling: an address that compares equal may be another mailbox.
            to = user.details.email.unwrap_or(to);
            templates::known(&name)
        }
        found => {
            let is_repeated = found.is_some();
            if let Some(old) = found {
                // Of several registrations that nobody activated the last one counts. It may be a stranger's: whoever reads
                // the mail sets the password, by the code or by a reset.
                remove(&mut tx, caller, &old).await?;
                row.password = None;
            }
            let (id, of) = (row.id, (row.project, row.app));
            let user = match app_users::insert(&mut tx, row, core.clock.now()).await {
                Ok(user) => user,
                // Another registration of this address came first.
                Err(StoreError::Unique(_)) => return Ok(()),
                Err(other) => return Err(other.into()),
            };
            note_new(&mut tx, caller, &user);
            let page = page(&mut tx, caller.account, of).await?;
            let mut members = vec![("user", id.as_str()), ("activationCode", code)];
            members.extend(is_repeated.then_some(("choosePassword", "true")));
            let link = templates::link(page.as_ref(), &members);
            templates::activation(&name, code, link.as_deref(), is_repeated)
        }
    };
    let mail = Mail::new(&to, mail.subject, mail.text).map_err(ApplicationsError::Email)?;
    users.outbox.enqueue(&mut tx, Some(caller.account), &mail).await?;
    tx.commit().await?;
    users.outbox.wake();
    Ok(())
}

async fn remove(tx: &mut Tx, caller: &Caller, user: &AppUser) -> Result<(), StoreError> {
    password_resets::delete_of_user(tx, caller.account, user.id).await?;
    app_users::delete(tx, caller.account, user.id).await?;
    tx.note(caller.account, (KIND, user.id.as_str()), || (Some(json!({})), None));
    Ok(())
}

/// Creates a user without a name, and its key.
///
/// # Errors
/// The key is not an application's.
#[instrument(skip_all)]
pub async fn create_anonymous(core: &Core, caller: &Caller) -> Result<LoggedIn, ServiceError> {
    let (project, application) = application(caller)?;
    let now = core.clock.now();
    let row = app_users::NewRow {
        account: caller.account,
        id: UserId::new(now.0, core.random16()?),
        project,
        app: application,
        status: UserStatus::Anonymous,
        folded: None,
        password: None,
        activation: None,
        details: &UserDetails::default(),
    };
    let _place = core.capacity.write(caller)?;
    let mut tx = begin(core, caller, application).await?;
    let user = app_users::insert(&mut tx, row, now).await?;
    note_new(&mut tx, caller, &user);
    let key = add_key(core, &mut tx, caller, &user).await?;
    tx.commit().await?;
    Ok(LoggedIn { user, key })
}
