//! Users set another password: by a code from their mailbox, or by the old one.

use std::{net::IpAddr, time::Duration};

use mail::{Mail, templates};
use serde_json::json;
use shared::{
    id::{ApplicationId, ProjectId, UserId},
    time::UnixMillis,
};
use tracing::{Instrument as _, instrument};

use super::{
    access::{Caller, new_key, require},
    attempts::{AttemptError, Subject, count_mail, count_mailbox, count_password_attempt},
    capacity::Place,
    users::{KIND, LoggedIn, Users, add_key, application, begin, not_found, page},
};
use crate::{
    domain::{
        access::{ActorKind, hash_key},
        app_user::{AppUser, UserStatus},
        attempts::AttemptKind,
        email::Email,
        password::{Password, SALT_LEN},
        password_body::{PasswordChange, Reset},
        permission::{Subject::Users as UserRecords, Verb},
        user_codes::RESET_MS,
    },
    error::{ApplicationsError, ServiceError},
    store::{Ctx, Tx, app_users, keys, password_resets, tenants},
};

/// Sends a code by which a user sets another password; answers alike for an address that nobody has.
///
/// Also of a user who was not activated yet: whoever has the code reads its mail. What depends on the address happens after the
/// answer, so that its time tells nothing. A process that ends meanwhile sends no mail: it is asked for again.
///
/// # Errors
/// The key is not an application's, this server sends no mail, [`AttemptError::Mails`] or [`AttemptError::Mailbox`] by what
/// was asked, whether the address is known or not.
#[instrument(skip_all)]
pub async fn request_reset(
    users: &Users,
    caller: &Caller,
    email: &Email,
    client: Option<IpAddr>,
) -> Result<(), AttemptError> {
    let core = &*users.core;
    let (project, application) = application(caller)?;
    if !users.outbox.is_on() {
        return Err(ApplicationsError::NoMail { so: "nobody resets a password" }.into());
    }
    let place = core.capacity.write(caller)?;
    let folded = email.folded();
    let mut tx = begin(core, caller, application).await?;
    // By the address exactly as it is asked for: whoever asks for another form of it leaves this one alone.
    let subject = Subject::new(core, AttemptKind::Reset, (caller.account, project), &folded);
    subject.count(core, &mut tx).await?.map_err(AttemptError::Mailbox)?;
    count_mail(core, &users.outbox, &mut tx, caller.account, AttemptKind::Reset, client).await?;
    tx.commit().await?;
    let (users, caller) = (users.clone(), caller.clone());
    let sent = async move {
        let _place = place;
        if let Err(error) = send_code(&users, &caller, (project, application), &folded).await {
            tracing::warn!(%error, "a mail to reset a password was not sent");
        }
    };
    tokio::spawn(sent.in_current_span());
    Ok(())
}

/// Sends a code to the user with an address, if there is one and the mailbox is not full.
async fn send_code(
    users: &Users,
    caller: &Caller,
    (project, application): (ProjectId, ApplicationId),
    folded: &str,
) -> Result<(), ServiceError> {
    let core = &*users.core;
    let code = new_key(&*core.random, "")?;
    let mut tx = begin(core, caller, application).await?;
    let Some(user) = app_users::find_by_address_locked(&mut tx, project, folded).await? else {
        return Ok(());
    };
    match count_mailbox(core, &mut tx, caller.account, (AttemptKind::Reset, folded)).await {
        Ok(()) => {}
        Err(AttemptError::Mailbox(_) | AttemptError::Mails(_) | AttemptError::Passwords(_)) => return Ok(()),
        Err(AttemptError::Other(error)) => return Err(error),
    }
    let account = tenants::find_account(&mut tx, caller.account).await?;
    let name = account.map(|account| account.name).unwrap_or_default();
    let page = page(&mut tx, caller.account, (project, application)).await?;
    let link = templates::link(page.as_ref(), &[("resetCode", &code)]);
    let mail = templates::reset(&name, &code, link.as_deref());
    let address = user.details.email.as_deref().unwrap_or_default();
    let Ok(mail) = Mail::new(address, mail.subject, mail.text) else { return Ok(()) };
    let until = UnixMillis(core.clock.now().0.saturating_add(RESET_MS));
    let mail = mail.expires_after(Duration::from_millis(RESET_MS.unsigned_abs()));
    password_resets::insert(&mut tx, &hash_key(&code), caller.account, user.id, until).await?;
    users.outbox.enqueue(&mut tx, Some(caller.account), &mail).await?;
    tx.note(caller.account, (KIND, user.id.as_str()), || (None, Some(json!({"passwordReset": "requested"}))));
    tx.commit().await?;
    users.outbox.wake();
    Ok(())
}

/// Sets another password by the code of a mail, ends every login, and logs the user in.
///
/// # Errors
/// The key is not one of an application of the user's project, the code is wrong, was used or has expired, or the password
/// is common.
#[instrument(skip_all)]
pub async fn reset(users: &Users, caller: &Caller, reset: Reset) -> Result<LoggedIn, ServiceError> {
    let core = &*users.core;
    let (project, application) = application(caller)?;
    let wrong = || ApplicationsError::WrongResetCode;
    let code = hash_key(&reset.code);
    // Hashing a password costs much: not without a code that is right so far.
    let of = |user: AppUser| Some(user).filter(|user| user.project == project);
    let known = {
        let mut conn = core.db.read().await?;
        let id = password_resets::find(&mut conn, &code, caller.account, core.clock.now()).await?;
        match id {
            Some(id) => app_users::find(&mut conn, caller.account, id).await?.and_then(of),
            None => None,
        }
    };
    let known = known.ok_or_else(wrong)?;
    let place = core.capacity.password(caller)?;
    let password = hash(users, place, "password", reset.password, &known).await?;
    let _place = core.capacity.write(caller)?;
    let mut tx = begin(core, caller, application).await?;
    let now = core.clock.now();
    // Lock order: the user, then its codes. A concurrent change of the password waits here.
    let user = app_users::find_locked(&mut tx, caller.account, known.id).await?;
    let user = user.and_then(of).ok_or_else(wrong)?;
    let id = user.id;
    let taken = password_resets::take(&mut tx, &code, caller.account, now).await?;
    taken.filter(|taken| *taken == id).ok_or_else(wrong)?;
    let user = AppUser { status: UserStatus::Active, stamp: user.stamp.touch(now), ..user };
    app_users::set_password(&mut tx, id, &password, user.stamp.updated_at).await?;
    app_users::activate(&mut tx, id, user.stamp.updated_at).await?;
    password_resets::delete_of_user(&mut tx, caller.account, id).await?;
    keys::revoke_all(&mut tx, caller.account, id.as_str(), now.0).await?;
    if let Some(email) = user.details.email.as_deref().and_then(|email| Email::parse(email).ok()) {
        let subject = Subject::new(core, AttemptKind::Password, (caller.account, project), &email.folded());
        subject.forget(&mut tx).await?;
    }
    note_changed(&mut tx, caller, id);
    let key = add_key(core, &mut tx, caller, &user).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(LoggedIn { user, key })
}

/// Changes the own password, and ends every login but that of the key by which the request came.
///
/// # Errors
/// The key is not that user's, the old password is wrong, [`AttemptError::Passwords`], or the new one is common.
#[instrument(skip_all)]
pub async fn change(
    users: &Users,
    caller: &Caller,
    key: &str,
    id: &str,
    change: PasswordChange,
) -> Result<(), AttemptError> {
    let core = &*users.core;
    let _ = require(caller, Verb::Update, UserRecords)?;
    if caller.kind != ActorKind::User {
        return Err(ApplicationsError::ForeignKey.into());
    }
    let parsed: UserId = id.parse().map_err(|_| not_found(id))?;
    let (user, found) = {
        let mut conn = core.db.read().await?;
        let user = app_users::find(&mut conn, caller.account, parsed).await?;
        (user, app_users::find_password(&mut conn, caller.account, parsed).await?)
    };
    let user = user.ok_or_else(|| not_found(id))?;
    let project = caller.project.filter(|_| caller.id == id).ok_or_else(|| not_found(id))?;
    let wrong = || ApplicationsError::WrongPassword;
    // An anonymous user has no password.
    let (folded, stored) = found.ok_or_else(wrong)?;
    let place = core.capacity.password(caller)?;
    // Not counted with logins: guesses by strangers must not block the user's own change.
    let changes = Subject::user(core, caller.account, parsed);
    {
        let _place = core.capacity.write(caller)?;
        count_password_attempt(core, &changes).await?;
    }
    if !users.passwords.verify(place, change.old, Some(stored.clone())).await? {
        return Err(wrong().into());
    }
    {
        let _place = core.capacity.write(caller)?;
        let mut tx = core.db.begin(&Ctx::default()).await?;
        changes.forget(&mut tx).await?;
        tx.commit().await?;
    }
    let place = core.capacity.password(caller)?;
    let password = hash(users, place, "newPassword", change.new, &user).await?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let now = core.clock.now();
    let user = app_users::find_locked(&mut tx, caller.account, parsed).await?;
    let user = user.ok_or_else(|| not_found(id))?;
    // A concurrent reset wins: it proved access to the mailbox.
    let now_stored = app_users::find_password(&mut tx, caller.account, parsed).await?;
    now_stored.filter(|(_, password)| *password == stored).ok_or_else(wrong)?;
    app_users::set_password(&mut tx, parsed, &password, user.stamp.touch(now).updated_at).await?;
    app_users::revoke_other_keys(&mut tx, caller.account, parsed, &hash_key(key), now).await?;
    password_resets::delete_of_user(&mut tx, caller.account, parsed).await?;
    Subject::new(core, AttemptKind::Password, (caller.account, project), &folded).forget(&mut tx).await?;
    note_changed(&mut tx, caller, parsed);
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// A new password as it is stored.
pub(super) async fn hash(
    users: &Users,
    place: Place,
    member: &'static str,
    password: Password,
    user: &AppUser,
) -> Result<String, ServiceError> {
    let mut salt = [0; SALT_LEN];
    users.core.random.fill(&mut salt)?;
    let about = [&user.details.email, &user.details.first_name, &user.details.last_name];
    let about = about.into_iter().flatten().cloned().collect();
    users.passwords.hash_new(place, member, password, salt, about).await
}

fn note_changed(tx: &mut Tx, caller: &Caller, id: UserId) {
    tx.note(caller.account, (KIND, id.as_str()), || (None, Some(json!({"changed": ["password"]}))));
}
