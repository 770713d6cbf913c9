//! Checks of claims: those that are asked for, and those of the worker.

use ::certificates::{service as orders, store::clock};
use kernel::{
    domain::{permission::Verb, quota::Quota},
    error::ServiceError,
    service::access::Caller,
    store::{Conn, Ctx, StoreError, Tx, quotas},
};
use redirects::store::{domains as published, log};
use serde_json::{Value, json};
use shared::{
    id::AccountId,
    short_url::{Host, Scheme, ShortDomain},
    time::UnixMillis,
};
use tenants::store::{accounts, domain_files};
use tracing::instrument;

use super::{
    DomainState, OwnDomain,
    claims::{KIND, absent, load},
    notices, own_host, prove,
};
use crate::{
    domain::claim::{Claim, Finding, LOST_MS, State},
    error::DomainsError,
    store::{claims, domains},
};

/// Shortest time between two checks of a claim that are asked for, and after the claim. It is not shared with other accounts: one
/// could keep another from proving its host.
const PAUSE_MS: i64 = 10_000;

/// So many hosts claimed, or checked on request, within a minute: the account can ask for no other check.
const MAX_ASKED: i64 = 10;
const MINUTE_MS: i64 = 60_000;

/// How long a worker has for a check before another one takes it.
const TAKEN_MS: i64 = 2 * MINUTE_MS;

/// Checks a claim now; the answer is the domain after it, be it proven or not.
///
/// # Errors
/// It is another account, there is no such claim, the platform gave the domain, another account has proven the host first
/// (409), or too many checks were asked for (429).
#[instrument(skip_all)]
pub async fn verify(
    state: &DomainState,
    caller: &Caller,
    account: &str,
    host: &str,
) -> Result<OwnDomain, ServiceError> {
    let (account, host) = own_host(caller, Verb::Update, account, host)?;
    let claim = ask(state, caller, account, &host).await?;
    let finding = prove::prove(state, &claim).await;
    let after = settle(state, &caller.ctx, &claim, finding).await?;
    match after {
        None => Err(absent(host.as_str())),
        Some(claim) if claim.state == State::Refused => Err(DomainsError::Taken(host).into()),
        Some(_) => load(state, account, &host).await,
    }
}

/// Notes that a check is asked for, within the limits of the account.
async fn ask(
    state: &DomainState,
    caller: &Caller,
    account: AccountId,
    host: &Host,
) -> Result<Claim, ServiceError> {
    let mut tx = state.db.begin(&caller.ctx).await?;
    accounts::lock(&mut tx, account).await?;
    // Behind the lock: others that asked have an earlier time.
    let now = clock::now(&mut tx).await?;
    let Some(claim) = claims::find(&mut tx, account, host).await? else {
        let holder = domains::find_holder(&mut tx, host).await?;
        return Err(if holder == Some(account) {
            DomainsError::NeedsNoProof(host.clone()).into()
        } else {
            absent(host.as_str())
        });
    };
    let last = claims::last_asked(&mut tx, account, host).await?;
    // One in the future is of a clock that was wrong.
    if (0..PAUSE_MS).contains(&now.0.saturating_sub(last.0)) {
        return Err(DomainsError::CheckedJustNow { host: host.clone(), seconds: PAUSE_MS / 1_000 }.into());
    }
    let since = UnixMillis(now.0.saturating_sub(MINUTE_MS));
    if claims::count_asked(&mut tx, account, since, now).await? >= MAX_ASKED {
        return Err(DomainsError::TooManyChecks { most: MAX_ASKED }.into());
    }
    claims::note_asked(&mut tx, account, host, now).await?;
    tx.commit().await?;
    Ok(claim)
}

/// Checks a claim that is due; `false`: another worker has taken it.
#[instrument(skip_all)]
pub async fn check_due(state: &DomainState, claim: &Claim) -> Result<bool, ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let until = UnixMillis(clock::now(&mut tx).await?.0.saturating_add(TAKEN_MS));
    let is_taken = claims::postpone(&mut tx, claim, until).await?;
    tx.commit().await?;
    if is_taken {
        let finding = prove::prove(state, claim).await;
        settle(state, &Ctx::default(), claim, finding).await?;
    }
    Ok(is_taken)
}

/// Ends a claim that was not proven in time; `false`: it is another one by now.
#[instrument(skip_all)]
pub async fn end(state: &DomainState, ended: &Claim) -> Result<bool, ServiceError> {
    let (account, host, now) = (ended.account, &ended.host, state.clock.now());
    let mut tx = state.db.begin(&Ctx::of_platform("end of a claim", now)).await?;
    log::lock(&mut tx).await?;
    let found = claims::find(&mut tx, account, host).await?;
    let due = clock::now(&mut tx).await?;
    if !found.is_some_and(|claim| claim.token == ended.token && claim.has_ended(due)) {
        return Ok(false);
    }
    claims::delete(&mut tx, account, host).await?;
    quotas::release(&mut tx, account, Quota::ShortDomains, 1);
    tx.note(account, (KIND, host.as_str()), || (Some(shown(ended)), None));
    tx.commit().await?;
    Ok(true)
}

/// Stores what a check found. The first proof of a host makes the short domain, and edges learn of it; `None`: the claim was
/// removed meanwhile, or made again.
async fn settle(
    state: &DomainState,
    ctx: &Ctx,
    checked: &Claim,
    finding: Finding,
) -> Result<Option<Claim>, ServiceError> {
    let (account, host) = (checked.account, &checked.host);
    let now = state.clock.now();
    let [jitter, ..] = state.random16()?;
    let was_open = open(&mut state.db.read().await?, account, host).await?.is_some();
    // What another account loses is noted in its trail, which must not show who of this account asked.
    let platform = Ctx::of_platform("proof of a short domain", now);
    let mut tx = state.db.begin(if was_open { &platform } else { ctx }).await?;
    log::lock(&mut tx).await?;
    let before = claims::find(&mut tx, account, host).await?;
    let Some(before) = before.filter(|claim| claim.token == checked.token) else { return Ok(None) };
    let holder = domains::find_holder(&mut tx, host).await?;
    let loser = if was_open { open(&mut tx, account, host).await? } else { None };
    let is_taken = loser.is_none() && holder.is_some_and(|holder| holder != account);
    let at = clock::now(&mut tx).await?;
    let after = before.clone().after(if is_taken { Finding::Taken } else { finding }, at, jitter);
    claims::update(&mut tx, &after).await?;
    let is_verified = after.state == State::Verified;
    let is_new = is_verified && holder != Some(account);
    let mut has_mails = false;
    if let Some(loser) = loser.filter(|_| is_new) {
        has_mails = lose(state, &mut tx, loser, account, at).await?;
    } else if is_new {
        let domain = ShortDomain::new(Scheme::Https, host.as_str())
            .map_err(|error| StoreError::Row(format!("host: {error}")))?;
        accounts::insert_domain(&mut tx, account, &domain).await?;
    }
    if is_new {
        published::publish_one(&mut tx, account, host, now).await?;
    }
    if before.state != after.state {
        tx.note(account, (KIND, host.as_str()), || (Some(shown(&before)), Some(shown(&after))));
    }
    let is_event = match after.state {
        State::Verified => before.state != State::Verified,
        State::Unproven => before.state != State::Unproven,
        State::Pending | State::Refused => false,
    };
    if is_event {
        has_mails |= notices::tell(state, &mut tx, &after, is_verified, now).await?;
    } else if after.begins_week(&before) {
        has_mails |= notices::write_mails(state, &mut tx, &after).await?;
    }
    if is_event && !is_verified {
        claims::open_in(&mut tx, account, host, LOST_MS).await?;
    }
    tx.commit().await?;
    if is_new {
        state.readers.wake_edges();
    }
    if is_verified && before.state != State::Verified {
        state.certificates.wake();
    }
    if is_event {
        state.readers.wake_events();
    }
    if has_mails {
        state.outbox.wake();
    }
    Ok(Some(after))
}

/// The claim of another account that has a host, if this one may prove it: its proof is gone for long enough, and no link is on
/// it. So no link ever changes its account.
pub(super) async fn open(
    conn: &mut Conn,
    account: AccountId,
    host: &Host,
) -> Result<Option<Claim>, StoreError> {
    let holder = domains::find_holder(conn, host).await?.filter(|holder| *holder != account);
    let Some(holder) = holder else { return Ok(None) };
    if !claims::is_open(conn, holder, host).await? || domains::has_live_links(conn, host).await? {
        return Ok(None);
    }
    claims::find(conn, holder, host).await
}

/// Takes a domain from an account and gives it to another one, which has proven it at a time of the database; whether mails wait.
async fn lose(
    state: &DomainState,
    tx: &mut Tx,
    loser: Claim,
    winner: AccountId,
    at: UnixMillis,
) -> Result<bool, ServiceError> {
    let now = state.clock.now();
    let lost = loser.clone().after(Finding::Taken, at, 0);
    claims::update(tx, &lost).await?;
    domain_files::delete(tx, lost.account, &lost.host).await?;
    orders::forget(tx, lost.account, &lost.host, now).await?;
    domains::hand_over(tx, lost.account, winner, &lost.host).await?;
    tx.note(lost.account, (KIND, lost.host.as_str()), || (Some(shown(&loser)), Some(shown(&lost))));
    notices::tell(state, tx, &lost, false, now).await
}

/// What the audit trail shows of a claim.
fn shown(claim: &Claim) -> Value {
    json!({"state": claim.state.as_str()})
}
