//! Begins and ends sign-ins by the provider.

use std::net::IpAddr;

use shared::{id::AccountId, time::UnixMillis};
use signin::{
    domain::session::Proof,
    service::sign_in::{Client, SignedIn, begin_session},
};
use tenants::{
    domain::{
        email::Email,
        operator::{Operator, OperatorKind},
    },
    store::{operators, tenants as accounts},
};
use tracing::instrument;
use url::Url;

use super::OidcState;
use crate::{
    domain::identity::{LinkedIdentity, MAX_IDENTITIES},
    error::SignInError,
    pending::{Answer, Pending},
    provider::{Identity, Provider},
    return_path::ReturnPath,
    store::{
        Conn, Ctx,
        identities::{self, Owner},
        used_states,
    },
};
use kernel::{
    domain::access::ActorKind,
    error::ServiceError,
    store::audit::{Principal, network_of},
};

/// Where the provider sends the browser back to.
pub const CALLBACK: &str = "/console/api/oidc/callback";

/// What the audit trail calls the operation.
const OPERATION: &str = "GET /console/api/oidc/callback";

/// Why nobody is signed in.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The sign-in itself failed.
    #[error(transparent)]
    SignIn(#[from] SignInError),
    /// An operation failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl From<kernel::store::StoreError> for Failed {
    fn from(error: kernel::store::StoreError) -> Self {
        Self::Service(error.into())
    }
}

/// A sign-in that was begun.
#[derive(Debug)]
pub struct Begun {
    /// Where the browser goes.
    pub url: Url,
    /// The value of `Set-Cookie`.
    pub cookie: String,
}

/// A sign-in that was ended.
#[derive(Debug)]
pub struct Ended {
    /// The operator, with a session.
    pub signed_in: SignedIn,
    /// Where the browser goes.
    pub return_path: ReturnPath,
}

/// Begins a sign-in from a browser that reached this server by `base`, scheme and host, and is limited by the address
/// `client`. Nothing is stored.
///
/// # Errors
/// There is no provider (404), or it does not answer.
#[instrument(skip_all)]
pub async fn begin(
    state: &OidcState,
    (base, client): (&str, Option<IpAddr>),
    return_path: ReturnPath,
    account: Option<AccountId>,
) -> Result<Begun, Failed> {
    let provider = provider(state)?;
    let redirect_uri: Url = format!("{base}{CALLBACK}")
        .parse()
        .map_err(|_| ServiceError::Internal("the base URL is none".to_owned()))?;
    let (url, pending) = provider.begin(&redirect_uri, return_path, account, client).await?;
    let cookie = state.cookies.set(&pending, &*state.core.random)?;
    Ok(Begun { url, cookie })
}

/// Ends a sign-in: asks the provider who it is, and begins a session of the operator with this identity.
///
/// That is the one to whom the identity was linked before, or else the one whose address it is, as the provider verified;
/// then it is linked. Unless an account is named, both together must lead to one account.
///
/// # Errors
/// The answer is not that of this browser's sign-in, was used before, or cannot be trusted; there is no such operator, or
/// more than one.
#[instrument(skip_all)]
pub async fn finish(
    state: &OidcState,
    pending: Pending,
    answer: Answer<'_>,
    client: &Client,
) -> Result<Ended, Failed> {
    let (core, provider) = (&*state.core, provider(state)?);
    let code = pending.check(answer, core.clock.now())?;
    // First: who has to wait tries again with the same answer.
    let entered = provider.enter(client.limited_as).await?;
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let is_first = used_states::claim(&mut tx, &pending.state_hash(), pending.expires_at()).await?;
    tx.commit().await?;
    if !is_first {
        return Err(SignInError::Replayed.into());
    }
    let (account, return_path) = (pending.account(), pending.return_path().clone());
    let identity = entered.finish(pending, code, answer.iss).await?;
    let (owner, is_linked) = find_operator(state, &identity, account).await?;
    let signed_in = sign_in(state, owner, &identity, is_linked, client).await?;
    Ok(Ended { signed_in, return_path })
}

/// States that one transaction removes.
const PURGE_STEP: u32 = 1_000;

/// Removes states of sign-ins that would have expired; returns how many.
#[instrument(skip_all)]
pub async fn purge(state: &OidcState) -> Result<u64, ServiceError> {
    let mut purged = 0;
    loop {
        let mut tx = state.core.db.begin(&Ctx::default()).await?;
        let step = used_states::purge(&mut tx, state.core.clock.now(), PURGE_STEP).await?;
        tx.commit().await?;
        purged += step;
        if step < u64::from(PURGE_STEP) {
            return Ok(purged);
        }
    }
}

fn provider(state: &OidcState) -> Result<&Provider, SignInError> {
    state.provider.as_deref().ok_or(SignInError::NoProvider)
}

/// Whose identity it is, and whether it is linked already.
async fn find_operator(
    state: &OidcState,
    identity: &Identity,
    account: Option<AccountId>,
) -> Result<(Owner, bool), Failed> {
    let mut conn = state.core.db.read().await?;
    let linked = identities::find(&mut conn, (&identity.issuer, &identity.subject), account).await?;
    let owner = match (&linked[..], account) {
        ([], _) => None,
        // The account decides.
        ([owner], Some(_)) => return Ok((*owner, true)),
        ([owner], None) => Some(*owner),
        ([..], _) => return Err(SignInError::SeveralAccounts.into()),
    };
    let persons = match verified_address(identity) {
        Ok(email) => find_persons(&mut conn, &email, account).await?,
        // Known by the link: the address may be missing.
        Err(_) if owner.is_some() => Vec::new(),
        Err(refusal) => return Err(refusal.into()),
    };
    match (owner, &persons[..]) {
        // Another account may have the same person by the address: the link must not decide between them, because whoever
        // invited the address first would have got the link.
        (Some(owner), others) if others.iter().all(|other| other.0 == owner.0) => Ok((owner, true)),
        (None, [owner]) => Ok((*owner, false)),
        (None, []) => {
            tracing::info!("nobody has the address that the provider of identities names");
            Err(SignInError::NoOperator.into())
        }
        (Some(_) | None, _) => Err(SignInError::SeveralAccounts.into()),
    }
}

/// The address that the provider has verified.
fn verified_address(identity: &Identity) -> Result<Email, SignInError> {
    let email = identity.email.as_deref().and_then(|text| Email::parse(text).ok());
    let email = email.ok_or(SignInError::NoAddress)?;
    if !identity.email_verified {
        return Err(SignInError::UnverifiedAddress);
    }
    Ok(email)
}

async fn find_persons(
    conn: &mut Conn,
    email: &Email,
    account: Option<AccountId>,
) -> Result<Vec<Owner>, Failed> {
    let mut found = identities::find_persons(conn, email.as_str(), account).await?;
    // The databases fold other letters differently, and letters that fold to one may be two mailboxes.
    found.retain(|(_, theirs)| theirs.eq_ignore_ascii_case(email.as_str()));
    Ok(found.into_iter().map(|(owner, _)| owner).collect())
}

async fn sign_in(
    state: &OidcState,
    owner: Owner,
    identity: &Identity,
    is_linked: bool,
    client: &Client,
) -> Result<SignedIn, Failed> {
    let core = &*state.core;
    let now = core.clock.now();
    let principal = Principal {
        at: now,
        kind: ActorKind::Operator.as_str(),
        id: Some(owner.1.to_string()),
        key: None,
        network: client.address.map(network_of),
        request: client.request.clone(),
        operation: OPERATION.to_owned(),
    };
    let mut tx = core.db.begin(&Ctx::default().with_principal(principal)).await?;
    let operator = operators::find_locked(&mut tx, owner.0, owner.1).await?;
    let is_person = |one: &Operator| one.kind == OperatorKind::Person && one.invitation.is_none();
    let operator = operator.filter(is_person).ok_or(SignInError::NoOperator)?;
    // It may have been changed since the operator was found.
    let account = accounts::find_account(&mut tx, owner.0).await?;
    account.filter(|account| account.provider_sign_in).ok_or(SignInError::NoOperator)?;
    let of = (identity.issuer.as_str(), identity.subject.as_str());
    if !identities::touch(&mut tx, owner, of, now).await? {
        if is_linked {
            // It was unlinked meanwhile.
            return Err(SignInError::NoOperator.into());
        }
        link(&mut tx, owner, &operator, identity, now).await?;
    }
    let (signed_in, has_ended) =
        begin_session(&state.sign_in, &mut tx, operator, client, Proof::Provider).await?;
    tx.commit().await?;
    if has_ended {
        core.key_lookups.revoked();
    }
    Ok(signed_in)
}

/// Links an identity to an operator that is locked. Of too many the one goes that was not used for the longest time.
async fn link(
    tx: &mut kernel::store::Tx,
    owner: Owner,
    operator: &Operator,
    identity: &Identity,
    now: UnixMillis,
) -> Result<(), Failed> {
    let linked = identities::list(tx, owner).await?;
    if linked.len() >= MAX_IDENTITIES
        && let Some(oldest) = linked.iter().min_by_key(|one| one.last_used_at)
    {
        identities::delete(tx, owner, oldest).await?;
    }
    let new = LinkedIdentity {
        issuer: identity.issuer.clone(),
        subject: identity.subject.clone(),
        email: operator.email.clone(),
        created_at: now,
        last_used_at: now,
    };
    Ok(identities::insert(tx, owner, &new).await?)
}
