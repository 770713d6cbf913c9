//! Links that sign the first owner in once: printed by the process that starts, for whoever sees its output.

use serde_json::json;
use shared::time::{Clock, UnixMillis};
use tracing::instrument;

use super::{
    OPERATOR, Random, SignInState,
    access::new_key,
    sign_in::{Client, SignedIn, begin_session},
};
use crate::{
    domain::{
        access::hash_key,
        operator::{Operator, OperatorKind},
        session::Proof,
    },
    error::{ServiceError, SignInFault},
    store::{Ctx, Db, accounts, operator_authenticators, operator_codes::SIGN_IN_LINKS, operators},
};

/// How long a link signs in: 15 minutes.
pub const LINK_MS: i64 = 15 * 60 * 1_000;

/// What the audit trail calls the operation.
const OPERATION: &str = "POST /console/api/session/link";

/// Ends the links of earlier starts, and makes the code of a new one for the first owner if `is_wanted`; `None` where a
/// second factor is on, which a link must not go round.
///
/// # Errors
/// There are no random bits.
pub async fn make(
    db: &Db,
    (clock, random): (&dyn Clock, &dyn Random),
    is_wanted: bool,
) -> Result<Option<String>, ServiceError> {
    let (code, now) = (new_key(random, "")?, clock.now());
    let mut tx = db.begin(&Ctx::of_command("start", now)).await?;
    let Some((operator, account)) = accounts::find_first_owner(&mut tx).await? else { return Ok(None) };
    let found = operators::find_locked(&mut tx, account, operator).await?;
    SIGN_IN_LINKS.delete_of(&mut tx, account, operator).await?;
    let authenticator = operator_authenticators::find(&mut tx, account, operator).await?;
    let has_factor = authenticator.is_some_and(|found| found.is_confirmed);
    let is_made = is_wanted && found.as_ref().is_some_and(is_person) && !has_factor;
    if is_made {
        let until = UnixMillis(now.0.saturating_add(LINK_MS));
        SIGN_IN_LINKS.insert(&mut tx, &hash_key(&code), account, operator, until).await?;
        tx.note(account, (OPERATOR, operator.as_str()), || (None, Some(json!({"signInLink": "made"}))));
    }
    tx.commit().await?;
    Ok(is_made.then_some(code))
}

/// Signs in by the code of a link, which is used up. Only a program of this machine may: a link that got into a log, or that
/// was printed before a proxy was set up, is of no use elsewhere.
///
/// # Errors
/// The code is wrong, was used or has expired, the request came from elsewhere or through a proxy, or a second factor was
/// turned on since (`Code::LoginFailed`); `Code::Suspended`.
#[instrument(skip_all)]
pub async fn sign_in(state: &SignInState, code: &str, client: &Client) -> Result<SignedIn, ServiceError> {
    let core = &*state.core;
    let wrong = || SignInFault::WrongLink;
    if client.address.is_none() || client.limited_as.is_some() {
        return Err(wrong().into());
    }
    let (code, now) = (hash_key(code), core.clock.now());
    let known = SIGN_IN_LINKS.find(&mut core.db.read().await?, &code, now).await?;
    let owner = known.ok_or_else(wrong)?;
    let principal = state.principal(Some(owner.1), client, OPERATION);
    let mut tx = core.db.begin(&Ctx::default().with_principal(principal)).await?;
    // Lock order: the operator, then its links.
    let operator = operators::find_locked(&mut tx, owner.0, owner.1).await?;
    let operator = operator.filter(is_person).ok_or_else(wrong)?;
    if !SIGN_IN_LINKS.take(&mut tx, &code, owner.0, owner.1, now).await? {
        return Err(wrong().into());
    }
    let authenticator = operator_authenticators::find(&mut tx, owner.0, owner.1).await?;
    if authenticator.is_some_and(|found| found.is_confirmed) {
        return Err(wrong().into());
    }
    let (signed_in, has_ended) = begin_session(state, &mut tx, operator, client, Proof::Password).await?;
    tx.commit().await?;
    if has_ended {
        core.key_lookups.revoked();
    }
    Ok(signed_in)
}

fn is_person(operator: &Operator) -> bool {
    operator.kind == OperatorKind::Person && operator.invitation.is_none()
}
