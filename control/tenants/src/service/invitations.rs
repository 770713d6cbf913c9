//! Invitations of people to work in an account, and their acceptance.

use std::{net::IpAddr, time::Duration};

use mail::{Mail, Outbox, templates};
use shared::time::UnixMillis;
use tracing::instrument;

use super::{
    Core,
    access::{Caller, new_key, require},
    attempts::{AttemptError, count_mail, count_mailbox},
    operators::{Shown, access_id, first_key, new, no_access, refuse_superior, room},
    roles::lock_with_rights,
    tenants::own_account,
};
use crate::{
    domain::{
        access::{ActorKind, hash_key},
        attempts::AttemptKind,
        operator::{AccessChange, INVITATION_MS, Invitation, Operator, OperatorChange, OperatorKind},
        permission::{Subject::Operators, Verb},
    },
    error::{ServiceError, TenantsError},
    store::{
        Ctx, Tx, accounts,
        audit::{Principal, network_of},
        operators as store, tenants,
    },
};

/// An operator who is invited.
#[derive(Debug)]
pub struct Invited {
    /// The operator.
    pub operator: Operator,
    /// The code of the invitation, which is shown this once; `None` where it went to the mailbox.
    pub code: Option<String>,
}

/// Invites somebody by mail address. The code goes to the mailbox, so that nobody accepts who does not read its mail; where
/// this server sends no mail it is shown to whoever invites. Only its hash is stored.
///
/// # Errors
/// The caller may not, or would give more than it has; there is no such role or project, or no mail can be sent to the
/// address (400); the address has access already (409); [`AttemptError::Mails`] or [`AttemptError::Mailbox`].
#[instrument(skip_all)]
pub async fn invite(
    core: &Core,
    outbox: &Outbox,
    caller: &Caller,
    account: &str,
    change: AccessChange,
) -> Result<Invited, AttemptError> {
    let _ = require(caller, Verb::Create, Operators)?;
    own_account(caller, account)?;
    let email = change.email.clone();
    let email = email.ok_or(TenantsError::EmailMissing)?;
    let (code, now) = (new_key(&*core.random, "")?, core.clock.now());
    let mut tx = core.db.begin(&caller.ctx).await?;
    let mut operator = new(core, &mut tx, caller, OperatorKind::Person, change).await?;
    operator.email = email.as_str().to_owned();
    operator.invitation = Some(invitation(&code, now));
    let others = room(&mut tx, caller.account).await?;
    if others.iter().any(|other| other.email.to_lowercase() == email.folded()) {
        return Err(TenantsError::EmailTaken.into());
    }
    store::insert(&mut tx, &operator).await?;
    let code = hand_over(core, outbox, &mut tx, &operator, code).await?;
    tx.commit().await?;
    outbox.wake();
    Ok(Invited { operator, code })
}

/// Invites somebody again who has not accepted: the code of before ends.
///
/// # Errors
/// There is no such access, or it was accepted (409); as [`invite`] for the mail.
#[instrument(skip_all)]
pub async fn invite_again(
    core: &Core,
    outbox: &Outbox,
    caller: &Caller,
    account: &str,
    access: &str,
) -> Result<Invited, AttemptError> {
    let _ = require(caller, Verb::Create, Operators)?;
    let (account, id) = (own_account(caller, account)?, access_id(access)?);
    let (code, now) = (new_key(&*core.random, "")?, core.clock.now());
    let mut tx = core.db.begin(&caller.ctx).await?;
    lock_with_rights(&mut tx, caller).await?;
    let mut operator = store::find_locked(&mut tx, account, id).await?.ok_or_else(|| no_access(access))?;
    refuse_superior(&mut tx, caller, &operator).await?;
    if operator.invitation.is_none() {
        return Err(TenantsError::InvitationAccepted.into());
    }
    operator.invitation = Some(invitation(&code, now));
    store::update(&mut tx, &operator).await?;
    let code = hand_over(core, outbox, &mut tx, &operator, code).await?;
    tx.commit().await?;
    outbox.wake();
    Ok(Invited { operator, code })
}

/// Puts the code of an invitation into a mail; gives it back where this server sends none.
async fn hand_over(
    core: &Core,
    outbox: &Outbox,
    tx: &mut Tx,
    invited: &Operator,
    code: String,
) -> Result<Option<String>, AttemptError> {
    if !outbox.is_on() {
        return Ok(Some(code));
    }
    let folded = invited.email.to_lowercase();
    // Not by the network of whoever invites: a company invites from one.
    count_mailbox(core, tx, invited.account, (AttemptKind::Invitation, &folded)).await?;
    count_mail(core, outbox, tx, invited.account, AttemptKind::Invitation, None).await?;
    let account = tenants::find_account(tx, invited.account).await?;
    let mail = templates::invitation(&account.map(|account| account.name).unwrap_or_default(), &code);
    let mail = Mail::new(&invited.email, mail.subject, mail.text).map_err(TenantsError::Email)?;
    let mail = mail.expires_after(Duration::from_millis(INVITATION_MS.unsigned_abs()));
    outbox.enqueue(tx, Some(invited.account), &mail).await?;
    Ok(None)
}

/// Who is invited with a code.
///
/// # Errors
/// No invitation has the code, or it has ended (401, without telling which); the account is suspended.
#[instrument(skip_all)]
pub async fn find_invited(core: &Core, code: &str) -> Result<Operator, ServiceError> {
    let mut conn = core.db.read().await?;
    let found = store::find_invited(&mut conn, &hash_key(code)).await?;
    let found = found.filter(|found| can_accept(found, core.clock.now())).ok_or_else(no_invitation)?;
    if accounts::is_suspended(&mut conn, found.account).await? {
        return Err(core.key_lookups.suspended());
    }
    Ok(found)
}

/// Begins to accept an invitation; nobody else accepts it until the transaction ends.
///
/// # Errors
/// As [`find_invited`].
#[instrument(skip_all)]
pub async fn begin_acceptance(
    core: &Core,
    code: &str,
    client: Option<IpAddr>,
    request: Option<String>,
) -> Result<(Tx, Operator), ServiceError> {
    let invited = find_invited(core, code).await?;
    let principal = Principal {
        at: core.clock.now(),
        kind: ActorKind::Operator.as_str(),
        id: Some(invited.id.to_string()),
        key: None,
        network: client.map(network_of),
        request,
        operation: "POST /invitations".to_owned(),
    };
    let mut tx = core.db.begin(&Ctx::default().with_principal(principal)).await?;
    let found = store::find_invited_locked(&mut tx, &hash_key(code)).await?;
    let found = found.filter(|found| can_accept(found, core.clock.now())).ok_or_else(no_invitation)?;
    Ok((tx, found))
}

/// Accepts an invitation that [`begin_acceptance`] gave: the operator gets its first key, which is shown this once.
#[instrument(skip_all)]
pub async fn accept(
    core: &Core,
    mut tx: Tx,
    invited: Operator,
    change: OperatorChange,
) -> Result<Shown, ServiceError> {
    let now = core.clock.now();
    let operator = Operator { invitation: None, ..invited.apply(change, now) };
    store::update(&mut tx, &operator).await?;
    let secret = first_key(core, &mut tx, &operator, operator.id.as_str(), now).await?;
    tx.commit().await?;
    Ok(Shown { operator, secret })
}

fn can_accept(invited: &Operator, now: UnixMillis) -> bool {
    invited.invitation.is_some_and(|invitation| invitation.until > now)
}

fn no_invitation() -> ServiceError {
    TenantsError::NoInvitation.into()
}

fn invitation(code: &str, now: UnixMillis) -> Invitation {
    Invitation { code: hash_key(code), until: UnixMillis(now.0.saturating_add(INVITATION_MS)) }
}
