//! Signs operators in and out.

use std::net::IpAddr;

use shared::{id::OperatorId, time::UnixMillis};
use tracing::instrument;

use super::{
    SignInState,
    gate::key_of,
    second_factor,
    throttles::{SignInError, count, forget},
};
use crate::{
    domain::{
        access::hash_key,
        operator::{Operator, OperatorKind},
        session::{IDLE_MS, MAX_NETWORKS, MAX_SESSIONS, Proof, Session, agent_family},
        sign_in_body::SignIn,
        throttle::Throttle,
        token::{TOKEN_LEN, Token},
    },
    error::{ServiceError, SignInFault},
    store::{
        Ctx, Tx, accounts, audit::network_of, operator_authenticators, operator_networks, operator_passwords,
        operator_passwords::Found, operator_sessions, operators, projects,
    },
};

/// What the audit trail calls the operation.
const OPERATION: &str = "POST /console/api/session";

/// Where a sign-in comes from.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// The address, if it is known.
    pub address: Option<IpAddr>,
    /// The address by which the client is limited; `None` for a program of this machine.
    pub limited_as: Option<IpAddr>,
    /// Id of the request.
    pub request: Option<String>,
    /// What the client calls itself.
    pub user_agent: Option<String>,
    /// The token that the request came with: its session ends.
    pub token: Option<Token>,
}

/// An operator with a session that begins.
#[derive(Debug)]
pub struct SignedIn {
    /// The operator.
    pub operator: Operator,
    /// The token for the cookie.
    pub token: Token,
    /// The session.
    pub session: Session,
}

/// Signs an operator in: a session of its own, whatever the request came with.
///
/// An unknown address, an ambiguous one, an operator without a password and a wrong password get one answer, after one
/// hash of a password, and are slowed down alike.
///
/// # Errors
/// [`Code::LoginFailed`]; with the right password [`Code::SecondFactor`]; [`Code::Suspended`] once everything is proven;
/// [`SignInError::Passwords`] whatever the password is, and [`SignInError::Codes`] with the right one.
#[instrument(skip_all)]
pub async fn sign_in(state: &SignInState, sign_in: SignIn, client: Client) -> Result<SignedIn, SignInError> {
    let core = &*state.core;
    let place = state.password_place(client.address)?;
    let email = sign_in.email.folded();
    let network = client.address.map(network_of);
    let found = {
        let mut conn = core.db.read().await?;
        operator_passwords::find_by_email(&mut conn, &email, network.as_deref(), sign_in.account, 2).await?
    };
    let found = only_one(found);
    let known_network = network.as_deref().filter(|_| found.as_ref().is_some_and(|one| one.is_known_network));
    let named = sign_in.account.as_ref().map(|id| id.as_str());
    let tries = match (&found, known_network) {
        (Some(one), Some(network)) => {
            Throttle::PasswordFrom { account: named, operator: one.operator.as_str(), network }
        }
        _ => Throttle::Password { account: named, email: &email },
    };
    count(state, tries).await?;
    let stored = found.as_ref().map(|one| one.password.clone());
    let is_right = state.passwords.verify(place, sign_in.password, stored).await?;
    let found = found.as_ref().filter(|_| is_right).ok_or_else(failed)?;
    let owner = (found.account, found.operator);

    let authenticator = {
        let mut conn = core.db.read().await?;
        operator_authenticators::find(&mut conn, found.account, found.operator).await?
    };
    let codes = Throttle::Code { operator: found.operator.as_str(), network: known_network };
    if authenticator.is_some_and(|authenticator| authenticator.is_confirmed) {
        if sign_in.second.is_none() {
            return Err(SignInFault::CodeMissing.into());
        }
        count(state, codes).await?;
    }
    let principal = state.principal(Some(found.operator), &client, OPERATION);
    let mut tx = core.db.begin(&Ctx::default().with_principal(principal)).await?;
    let operator = operators::find_locked(&mut tx, found.account, found.operator).await?;
    let is_person = |one: &Operator| one.kind == OperatorKind::Person && one.invitation.is_none();
    let operator = operator.filter(is_person).ok_or_else(failed)?;
    // The password was changed while it was compared, which ends all sessions: this one must not outlive that.
    let now_stored = operator_passwords::find(&mut tx, found.account, found.operator).await?;
    now_stored.filter(|now_stored| *now_stored == found.password).ok_or_else(failed)?;
    second_factor::check(state, &mut tx, owner, sign_in.second.as_ref()).await?;
    forget(state, &mut tx, tries).await?;
    forget(state, &mut tx, codes).await?;
    let (signed_in, has_ended) = begin_session(state, &mut tx, operator, &client, Proof::Password).await?;
    tx.commit().await?;
    if has_ended {
        core.key_lookups.revoked();
    }
    Ok(signed_in)
}

/// Begins a session of an operator who has proven who it is, and is locked. The session of the token that the request came
/// with ends, and the oldest one of an operator who has too many.
///
/// `true`: some ended. Then [`KeyLookups::revoked`](super::access::KeyLookups::revoked) is called after the commit.
///
/// # Errors
/// [`Code::Suspended`]: the account is. The operator is confined to projects that are gone (403).
pub async fn begin_session(
    state: &SignInState,
    tx: &mut Tx,
    operator: Operator,
    client: &Client,
    proof: Proof,
) -> Result<(SignedIn, bool), ServiceError> {
    let (owner, now) = ((operator.account, operator.id), state.core.clock.now());
    if accounts::is_suspended(tx, owner.0).await? {
        return Err(state.core.key_lookups.suspended());
    }
    refuse_without_project(tx, &operator).await?;
    let ended = match &client.token {
        Some(token) => end_of_token(state, tx, token, now).await?,
        None => false,
    };
    let has_ended = make_room(tx, owner, now).await? || ended;
    if let Some(network) = client.address.map(network_of) {
        operator_networks::put(tx, owner.0, owner.1, &network, now, MAX_NETWORKS).await?;
    }
    let (token, session) = begin(state, tx, owner, (client, proof), now).await?;
    Ok((SignedIn { operator, token, session }, has_ended))
}

/// Of two operators it would be anybody's guess which one is meant, unless one alone signed in from here before. So whoever
/// invites the address of somebody else into another account does not shut them out where they are at home.
fn only_one(mut found: Vec<Found>) -> Option<Found> {
    let is_clear = match &found[..] {
        [_] => true,
        [one, other, ..] => one.is_known_network && !other.is_known_network,
        [] => false,
    };
    is_clear.then(|| found.swap_remove(0))
}

/// Refuses an operator whose projects were all deleted: without any it must not work on.
async fn refuse_without_project(tx: &mut Tx, operator: &Operator) -> Result<(), ServiceError> {
    let Some(projects) = &operator.projects else { return Ok(()) };
    for project in projects {
        if projects::hold(tx, operator.account, *project).await? {
            return Ok(());
        }
    }
    Err(SignInFault::ProjectsDeleted.into())
}

fn failed() -> ServiceError {
    SignInFault::WrongLogin.into()
}

/// A new session. Its token is never one that a client sent.
async fn begin(
    state: &SignInState,
    tx: &mut Tx,
    owner: operator_sessions::Owner,
    (client, proof): (&Client, Proof),
    now: UnixMillis,
) -> Result<(Token, Session), ServiceError> {
    let mut random = [0; TOKEN_LEN];
    state.core.random.fill(&mut random)?;
    let token = Token::new(random);
    let session = Session {
        hash: hash_key(&key_of(state, &token)?),
        created_at: now,
        last_used_at: now,
        expires_at: UnixMillis(now.0.saturating_add(IDLE_MS)),
        network: client.address.map(network_of),
        agent: client.user_agent.as_deref().and_then(agent_family),
        proof,
    };
    operator_sessions::insert(tx, owner, &session).await?;
    Ok((token, session))
}

/// Ends the oldest sessions of an operator that has as many as it may have; returns whether there were such.
async fn make_room(
    tx: &mut Tx,
    owner: operator_sessions::Owner,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    let sessions = operator_sessions::list_valid(tx, owner, now).await?;
    let too_many = (sessions.len() + 1).saturating_sub(MAX_SESSIONS);
    for session in sessions.iter().take(too_many) {
        operator_sessions::end(tx, owner, &session.hash, now).await?;
    }
    Ok(too_many > 0)
}

/// Ends the session of a token, whosever it is: the browser is about to forget it.
async fn end_of_token(
    state: &SignInState,
    tx: &mut Tx,
    token: &Token,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    let hash = hash_key(&key_of(state, token)?);
    let owner: Option<(_, OperatorId)> = operator_sessions::find_owner(tx, &hash).await?;
    match owner {
        Some(owner) => Ok(operator_sessions::end(tx, owner, &hash, now).await?),
        None => Ok(false),
    }
}
