//! Another password by a code from the mailbox.

use std::time::Duration;

use mail::{Mail, templates};
use serde_json::json;
use shared::{id::AccountId, time::UnixMillis};
use tracing::{Instrument as _, instrument};

use super::{
    OPERATOR, SignInState, about,
    access::new_key,
    own_passwords::put,
    sign_in::Client,
    throttles::{SignInError, count_in, forget},
};
use crate::{
    domain::{
        access::hash_key,
        email::Email,
        operator::{Operator, OperatorKind},
        password_body::Reset,
        session::MAX_NETWORKS,
        sign_in_body::ResetRequest,
        throttle::Throttle,
    },
    error::{ServiceError, SignInFault},
    store::{
        Ctx, Tx, accounts, audit::network_of, keys, operator_codes::RESETS, operator_networks,
        operator_passwords, operators, tenants,
    },
};

/// How long a code sets another password: an hour.
pub const RESET_MS: i64 = 3_600_000;

/// Most accounts of one address that get a code at once.
const MAX_ACCOUNTS: i64 = 5;

const REQUEST: &str = "POST /console/api/passwordReset";
const RESET: &str = "PUT /console/api/passwordReset";

/// Sends a code for another password to an operator who has one; answers alike for an address that nobody has, and where
/// the account is suspended.
///
/// What depends on the address happens after the answer, so that its time tells nothing. A process that ends meanwhile
/// sends no mail: it is asked for again.
///
/// # Errors
/// This server sends no mail, or [`SignInError::Mails`] by what was asked, whether the address is known or not.
#[instrument(skip_all)]
pub async fn request(state: &SignInState, asked: ResetRequest, client: &Client) -> Result<(), SignInError> {
    let core = &*state.core;
    if !state.outbox.is_on() {
        return Err(SignInFault::NoMail.into());
    }
    let place = state.resets.clone().try_acquire_owned();
    let place = place.map_err(|_| ServiceError::Full("password resets"))?;
    let email = asked.email.folded();
    let named = asked.account.as_ref().map(|id| id.as_str());
    let mut tx = core.db.begin(&Ctx::default()).await?;
    count_in(state, &mut tx, Throttle::Reset { account: named, email: &email }).await?;
    if let Some(network) = client.limited_as.map(network_of) {
        count_in(state, &mut tx, Throttle::MailsOf(&network)).await?;
    }
    tx.commit().await?;
    let (state, ctx) = (state.clone(), Ctx::default().with_principal(state.principal(None, client, REQUEST)));
    let sent = async move {
        let _place = place;
        if let Err(error) = send_all(&state, &ctx, &email, asked.account).await {
            tracing::warn!(%error, "a mail to reset a password was not sent");
        }
    };
    tokio::spawn(sent.in_current_span());
    Ok(())
}

/// Sends a code to each operator with an address.
async fn send_all(
    state: &SignInState,
    ctx: &Ctx,
    email: &str,
    account: Option<AccountId>,
) -> Result<(), ServiceError> {
    let mut tx = state.core.db.begin(ctx).await?;
    for one in operator_passwords::find_by_email(&mut tx, email, None, account, MAX_ACCOUNTS).await? {
        if accounts::is_suspended(&mut tx, one.account).await? {
            continue;
        }
        let operator = operators::find_locked(&mut tx, one.account, one.operator).await?;
        let Some(operator) = operator.filter(is_person) else { continue };
        match count_in(state, &mut tx, Throttle::Mailbox(email)).await {
            Ok(()) => send(state, &mut tx, &operator).await?,
            // A full mailbox gets no more, and nobody is told.
            Err(SignInError::Mails(_) | SignInError::Passwords(_) | SignInError::Codes(_)) => break,
            Err(SignInError::Other(error)) => return Err(error),
        }
    }
    tx.commit().await?;
    state.outbox.wake();
    Ok(())
}

async fn send(state: &SignInState, tx: &mut Tx, operator: &Operator) -> Result<(), ServiceError> {
    let code = new_key(&*state.core.random, "")?;
    let account = tenants::find_account(tx, operator.account).await?;
    let name = account.map(|account| account.name).unwrap_or_default();
    let mail = templates::operator_reset(&name, &code);
    // An address to which no mail can be sent, such as that of the first operator.
    let Ok(mail) = Mail::new(&operator.email, mail.subject, mail.text) else { return Ok(()) };
    let mail = mail.expires_after(Duration::from_millis(RESET_MS.unsigned_abs()));
    let until = UnixMillis(state.core.clock.now().0.saturating_add(RESET_MS));
    RESETS.insert(tx, &hash_key(&code), operator.account, operator.id, until).await?;
    state.outbox.enqueue(tx, Some(operator.account), &mail).await?;
    let what = || (None, Some(json!({"passwordReset": "requested"})));
    tx.note(operator.account, (OPERATOR, operator.id.as_str()), what);
    Ok(())
}

/// Sets another password by the code of a mail, ends every session of the operator, and every pause after wrong
/// passwords. A second factor stays on.
///
/// # Errors
/// The code is wrong, was used or has expired, the account is suspended, or the password is common.
#[instrument(skip_all)]
pub async fn reset(state: &SignInState, reset: Reset, client: &Client) -> Result<(), ServiceError> {
    let core = &*state.core;
    let wrong = || SignInFault::WrongResetCode;
    let code = hash_key(&reset.code);
    // Hashing a password costs much: not without a code that is right so far.
    let known = {
        let mut conn = core.db.read().await?;
        match RESETS.find(&mut conn, &code, core.clock.now()).await? {
            Some((account, operator)) => operators::find(&mut conn, account, operator).await?,
            None => None,
        }
    };
    let known = known.filter(is_person).ok_or_else(wrong)?;
    if accounts::is_suspended(&mut core.db.read().await?, known.account).await? {
        return Err(core.key_lookups.suspended());
    }
    let place = state.password_place(client.address)?;
    let password = state.passwords.hash_new(place, "password", reset.password, state.salt()?, about(&known));
    let password = password.await?;
    let principal = state.principal(Some(known.id), client, RESET);
    let mut tx = core.db.begin(&Ctx::default().with_principal(principal)).await?;
    let now = core.clock.now();
    // Lock order: the operator, then its codes. A concurrent change of the password waits here.
    let operator = operators::find_locked(&mut tx, known.account, known.id).await?;
    let operator = operator.filter(is_person).ok_or_else(wrong)?;
    let owner = (operator.account, operator.id);
    if !RESETS.take(&mut tx, &code, owner.0, owner.1, now).await? {
        return Err(wrong().into());
    }
    put(&mut tx, &operator, &password, now).await?;
    keys::end_sessions(&mut tx, owner.0, owner.1.as_str(), &[], now.0).await?;
    end_pauses(state, &mut tx, &operator).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// Ends pauses after wrong passwords. Those after wrong codes stay: a mail proves nothing of the second factor. Networks are
/// forgotten: whoever had the password before is no better known than strangers.
async fn end_pauses(state: &SignInState, tx: &mut Tx, operator: &Operator) -> Result<(), ServiceError> {
    let email = Email::parse(&operator.email).map(|email| email.folded()).unwrap_or_default();
    for account in [None, Some(operator.account.as_str())] {
        forget(state, tx, Throttle::Password { account, email: &email }).await?;
    }
    let networks = operator_networks::list(tx, operator.account, operator.id, MAX_NETWORKS).await?;
    for network in &networks {
        for account in [None, Some(operator.account.as_str())] {
            let operator = operator.id.as_str();
            forget(state, tx, Throttle::PasswordFrom { account, operator, network }).await?;
        }
    }
    operator_networks::delete_of(tx, operator.account, operator.id).await?;
    Ok(())
}

fn is_person(operator: &Operator) -> bool {
    operator.kind == OperatorKind::Person && operator.invitation.is_none()
}
