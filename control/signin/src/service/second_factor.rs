//! The second factor: an authenticator app and recovery codes.

use secrets::keys::{NONCE_LEN, open_with, seal_with};
use serde_json::json;
use shared::id::{AccountId, OperatorId};
use tracing::instrument;

use super::{
    OPERATOR, SignInState,
    access::{Caller, require},
    own_passwords::check_own,
    person,
    throttles::{SignInError, count, forget},
};
use crate::{
    domain::{
        authenticator::{self, SECRET_LEN},
        permission::{Subject::Operators, Verb},
        recovery_code::{self, COUNT, RANDOM_LEN},
        sign_in_body::{Confirmation, SecondFactor},
        throttle::Throttle,
    },
    error::{ServiceError, SignInFault},
    store::{
        Tx, keys, operator_authenticators as store, operator_authenticators::Authenticator, operators,
        recovery_codes, tenants,
    },
};

/// The secret of an authenticator that begins; shown this once.
#[derive(Debug)]
pub struct Enrolment {
    /// The secret in base32.
    pub secret: String,
    /// What a QR code for apps holds.
    pub url: String,
}

/// Begins an authenticator: it counts once a code confirmed it. One that was begun before is replaced.
///
/// # Errors
/// The password is wrong, or an authenticator is on (409).
#[instrument(skip_all)]
pub async fn enrol(
    state: &SignInState,
    caller: &Caller,
    confirmation: Confirmation,
) -> Result<Enrolment, SignInError> {
    let _ = require(caller, Verb::Update, Operators)?;
    let operator = person(&state.core, caller).await?;
    check_own(state, caller, &operator, confirmation.password).await?;
    let core = &*state.core;
    let mut secret = [0; SECRET_LEN];
    core.random.fill(&mut secret)?;
    let sealed = seal(state, operator.id, &secret)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    lock(&mut tx, (operator.account, operator.id)).await?;
    if is_on(store::find_locked(&mut tx, operator.account, operator.id).await?.as_ref()) {
        return Err(SignInFault::AuthenticatorOn.into());
    }
    store::put(&mut tx, operator.account, operator.id, &sealed, core.clock.now()).await?;
    let account = tenants::find_account(&mut tx, operator.account).await?;
    note(&mut tx, (operator.account, operator.id), "begun");
    tx.commit().await?;
    let account = account.map(|account| account.name).unwrap_or_default();
    let shown = authenticator::shown(&secret).zip(authenticator::url(&secret, &operator.email, &account));
    let (secret, url) = shown.ok_or_else(|| ServiceError::Internal("no secret can be shown".to_owned()))?;
    Ok(Enrolment { secret, url })
}

/// Turns an authenticator on by a code of it, and ends the sessions of the operator but the one whose key has the hash
/// `session`; gives ten recovery codes, which are shown this once.
///
/// # Errors
/// None was begun, or one is on (409); the code is wrong (400).
#[instrument(skip_all)]
pub async fn confirm(
    state: &SignInState,
    caller: &Caller,
    session: &[u8; 32],
    code: &str,
) -> Result<Vec<String>, SignInError> {
    let _ = require(caller, Verb::Update, Operators)?;
    let operator = person(&state.core, caller).await?;
    let core = &*state.core;
    let tries = Throttle::Own(operator.id.as_str());
    count(state, tries).await?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let owner = (operator.account, operator.id);
    lock(&mut tx, owner).await?;
    let found = store::find_locked(&mut tx, owner.0, owner.1).await?;
    let Some(found) = found.filter(|found| !found.is_confirmed) else {
        return Err(SignInFault::NothingToConfirm.into());
    };
    if !use_code(state, &mut tx, owner, &found, code).await? {
        return Err(SignInFault::WrongCode.into());
    }
    let codes = new_codes(state, &mut tx, owner).await?;
    forget(state, &mut tx, tries).await?;
    // The others began without it, and one of them may be the reason for it.
    keys::end_sessions(&mut tx, owner.0, owner.1.as_str(), session, core.clock.now().0).await?;
    note(&mut tx, owner, "on");
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(codes)
}

/// Turns the second factor off.
///
/// # Errors
/// The password or the code is wrong, or none is on (409).
#[instrument(skip_all)]
pub async fn disable(
    state: &SignInState,
    caller: &Caller,
    confirmation: Confirmation,
) -> Result<(), SignInError> {
    let (mut tx, owner) = begin_change(state, caller, confirmation).await?;
    store::delete(&mut tx, owner.0, owner.1).await?;
    recovery_codes::delete(&mut tx, owner.0, owner.1).await?;
    note(&mut tx, owner, "off");
    tx.commit().await?;
    Ok(())
}

/// Replaces the recovery codes; the new ones are shown this once.
///
/// # Errors
/// As [`disable`].
#[instrument(skip_all)]
pub async fn renew_codes(
    state: &SignInState,
    caller: &Caller,
    confirmation: Confirmation,
) -> Result<Vec<String>, SignInError> {
    let (mut tx, owner) = begin_change(state, caller, confirmation).await?;
    let codes = new_codes(state, &mut tx, owner).await?;
    note(&mut tx, owner, "recoveryCodes");
    tx.commit().await?;
    Ok(codes)
}

/// A transaction of somebody who has shown both factors.
async fn begin_change(
    state: &SignInState,
    caller: &Caller,
    confirmation: Confirmation,
) -> Result<(Tx, (AccountId, OperatorId)), SignInError> {
    let _ = require(caller, Verb::Update, Operators)?;
    let core = &*state.core;
    let operator = person(core, caller).await?;
    let owner = (operator.account, operator.id);
    check_own(state, caller, &operator, confirmation.password).await?;
    let codes = Throttle::Code { operator: operator.id.as_str(), network: Some("session") };
    count(state, codes).await?;
    let place = core.capacity.write(caller)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    lock(&mut tx, owner).await?;
    if !is_on(store::find_locked(&mut tx, owner.0, owner.1).await?.as_ref()) {
        return Err(SignInFault::NoSecondFactor.into());
    }
    check(state, &mut tx, owner, confirmation.second.as_ref()).await?;
    forget(state, &mut tx, codes).await?;
    drop(place);
    Ok((tx, owner))
}

/// Checks the second factor of an operator and uses the code up; nothing is asked where none is on. The operator is
/// locked by the caller, so that a code works once.
///
/// # Errors
/// [`Code::SecondFactor`].
pub(super) async fn check(
    state: &SignInState,
    tx: &mut Tx,
    owner: (AccountId, OperatorId),
    second: Option<&SecondFactor>,
) -> Result<(), ServiceError> {
    let Some(found) = store::find_locked(tx, owner.0, owner.1).await?.filter(|found| found.is_confirmed)
    else {
        return Ok(());
    };
    let is_right = match second {
        Some(SecondFactor::Code(code)) => use_code(state, tx, owner, &found, code).await?,
        Some(SecondFactor::RecoveryCode(code)) => {
            let hash = recovery_code::hash(state.secret(), owner.1.as_str(), code);
            let is_taken = recovery_codes::take(tx, owner.0, owner.1, &hash).await?;
            if is_taken {
                note(tx, owner, "recoveryCodeUsed");
            }
            is_taken
        }
        None => false,
    };
    if is_right {
        return Ok(());
    }
    Err(if second.is_some() { SignInFault::WrongSecondFactor } else { SignInFault::CodeMissing }.into())
}

/// Locks an operator, who may have been removed meanwhile.
async fn lock(tx: &mut Tx, owner: (AccountId, OperatorId)) -> Result<(), ServiceError> {
    let found = operators::find_locked(tx, owner.0, owner.1).await?;
    found.map(|_| ()).ok_or_else(|| SignInFault::OperatorRemoved.into())
}

async fn use_code(
    state: &SignInState,
    tx: &mut Tx,
    owner: (AccountId, OperatorId),
    found: &Authenticator,
    code: &str,
) -> Result<bool, ServiceError> {
    let secret = unseal(state, owner.1, &found.sealed)?;
    let now = state.core.clock.now();
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    match authenticator::matching_step(&secret, &code, found.last_step, now.0) {
        Some(step) => Ok(store::use_step(tx, owner.0, owner.1, step, now).await?),
        None => Ok(false),
    }
}

async fn new_codes(
    state: &SignInState,
    tx: &mut Tx,
    owner: (AccountId, OperatorId),
) -> Result<Vec<String>, ServiceError> {
    let (mut codes, mut hashes) = (Vec::with_capacity(COUNT), Vec::with_capacity(COUNT));
    for _ in 0..COUNT {
        let mut random = [0; RANDOM_LEN];
        state.core.random.fill(&mut random)?;
        let code = recovery_code::from_random(&random);
        hashes.push(recovery_code::hash(state.secret(), owner.1.as_str(), &code));
        codes.push(code);
    }
    recovery_codes::replace(tx, owner.0, owner.1, &hashes).await?;
    Ok(codes)
}

fn is_on(found: Option<&Authenticator>) -> bool {
    found.is_some_and(|found| found.is_confirmed)
}

fn note(tx: &mut Tx, (account, operator): (AccountId, OperatorId), what: &str) {
    tx.note(account, (OPERATOR, operator.as_str()), || (None, Some(json!({"secondFactor": what}))));
}

fn sealing_key(state: &SignInState) -> [u8; 32] {
    blake3::derive_key("waymark 2026-11 secrets of authenticators", state.secret())
}

fn seal(
    state: &SignInState,
    operator: OperatorId,
    secret: &[u8; SECRET_LEN],
) -> Result<Vec<u8>, ServiceError> {
    let mut nonce = [0; NONCE_LEN];
    state.core.random.fill(&mut nonce)?;
    let sealed = seal_with(&sealing_key(state), operator.as_str(), secret, nonce);
    sealed.ok_or_else(|| ServiceError::Internal("a secret cannot be encrypted".to_owned()))
}

fn unseal(
    state: &SignInState,
    operator: OperatorId,
    sealed: &[u8],
) -> Result<[u8; SECRET_LEN], ServiceError> {
    let secret =
        open_with(&sealing_key(state), operator.as_str(), sealed).and_then(|secret| secret.try_into().ok());
    secret.ok_or_else(|| ServiceError::Internal("the secret of an authenticator cannot be read".to_owned()))
}
