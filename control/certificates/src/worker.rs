//! Orders certificates that are due: of any number of processes one at a time.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use kernel::{
    error::ServiceError,
    store::{Ctx, StoreError},
};
use shared::time::UnixMillis;
use tokio_util::sync::CancellationToken;

use crate::{
    client::Authority,
    domain::{
        account::StoredAccount,
        certificate::{self, Certificate, Fault, FaultKind},
    },
    service::{
        CertificateState,
        order::{self, Ended},
    },
    store::{
        authorities::{self, Held},
        certificates, clock,
    },
};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(5);

/// Time between two renewals of the lease: two may fail.
const RENEW: Duration = Duration::from_secs(3);

/// Time between two readings of when certificates end, in looks: a minute.
const READ_ENDS: u32 = 12;

/// Time between two comparisons of the clock, in looks: an hour. By one that is behind nothing is due, and so no order fails.
const COMPARE: u32 = 720;

/// Certificates whose end is shown.
const SHOWN: u32 = 1_000;

/// Orders of one look, and domains that are looked at for the first time.
const BATCH: u32 = 32;

/// Orders at one time: authorities bound how many are open.
const AT_ONCE: usize = 4;

/// Orders in a row that an authority finds too many, before all others wait, too: fewer are of single domains.
const LIMITED: usize = 3;

/// Pause of all orders after the account of this service could not be made, or is not known any more, and while the clock is wrong.
const PAUSE: Duration = Duration::from_secs(60);

/// Orders certificates until `stop`; without an authority it only waits.
pub async fn run(state: Arc<CertificateState>, stop: CancellationToken) {
    if !state.is_on() {
        return stop.cancelled().await;
    }
    if let Err(error) = authorities::free_all(&state.db).await {
        tracing::warn!(%error, "the lease of the previous process holds until it runs out");
    }
    let mut looks = 0_u32;
    while !stop.is_cancelled() {
        let worked = tokio::select! {
            worked = look(&state, looks) => worked,
            // What is under way goes on where it was, here or at another control, as soon as the lease has run out.
            () = stop.cancelled() => return,
        };
        if let Err(error) = worked {
            tracing::warn!(%error, "certificates cannot be ordered");
        }
        looks = looks.wrapping_add(1);
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.wake.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn look(state: &CertificateState, looks: u32) -> Result<(), ServiceError> {
    if looks.is_multiple_of(COMPARE)
        && let Some(fault) = compare_clocks(state).await?
    {
        state.metrics.failed.inc();
        tracing::error!(reason = %fault.text, "certificates are not renewed in time");
    }
    let ended = work(state).await?;
    if looks.is_multiple_of(READ_ENDS) || !ended.is_empty() {
        state.metrics.ends_are(certificates::list_ends(&mut state.db.read().await?, SHOWN).await?);
    }
    Ok(())
}

/// Compares the clock of the database with that of the authority; `None`: it is right, or there is none to compare it with.
pub async fn compare_clocks(state: &CertificateState) -> Result<Option<Fault>, ServiceError> {
    let Some(authority) = &state.authority else { return Ok(None) };
    let Some(theirs) = authority.time().await else { return Ok(None) };
    let own = clock::now(&mut state.db.read().await?).await?;
    Ok(certificate::clock_fault(own, theirs))
}

/// Orders the certificates that are due, a bounded number, unless another control does; gives what became of them.
///
/// # Errors
/// The store failed. What fails of an order is stored with it.
pub async fn work(state: &CertificateState) -> Result<Vec<Ended>, ServiceError> {
    let Some(authority) = &state.authority else { return Ok(Vec::new()) };
    let Some((held, due)) = take(state, authority).await? else { return Ok(Vec::new()) };
    let worked = tokio::select! {
        worked = order_all(state, authority, &held, due) => worked,
        lost = keep(state, &held) => lost.map(|()| Vec::new()),
    };
    let mut tx = state.db.begin(&Ctx::default()).await?;
    authorities::release(&mut tx, &held).await?;
    tx.commit().await?;
    worked
}

/// Takes the lease, if something is due.
async fn take(
    state: &CertificateState,
    authority: &Authority,
) -> Result<Option<(Held, Vec<Certificate>)>, ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let now = clock::now(&mut tx).await?;
    certificates::add_missing(&mut tx, now, BATCH).await?;
    let due = certificates::list_due(&mut tx, now, BATCH).await?;
    if due.is_empty() {
        tx.commit().await?;
        return Ok(None);
    }
    authorities::add(&mut tx, authority.directory()).await?;
    let held = authorities::take(&mut tx, authority.directory()).await?;
    tx.commit().await?;
    Ok(held.map(|held| (held, due)))
}

/// Holds the lease; returns when another control has taken it.
async fn keep(state: &CertificateState, held: &Held) -> Result<(), ServiceError> {
    loop {
        tokio::time::sleep(RENEW).await;
        let renewed = async {
            let mut tx = state.db.begin(&Ctx::default()).await?;
            let is_held = authorities::hold(&mut tx, held).await?;
            tx.commit().await?;
            Ok::<_, StoreError>(is_held)
        };
        match renewed.await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // The next one may succeed before the lease has run out; what is written is written under the fence.
            Err(error) => tracing::warn!(%error, "the lease of certificates cannot be renewed"),
        }
    }
}

async fn order_all(
    state: &CertificateState,
    authority: &Authority,
    held: &Held,
    due: Vec<Certificate>,
) -> Result<Vec<Ended>, ServiceError> {
    let (credentials, replaced_at) = match credentials(state, authority, held).await? {
        Ok(own) => own,
        Err(fault) => {
            state.metrics.failed.inc();
            tracing::error!(reason = %fault.text, "no account at the certificate authority could be made");
            pause(state, held, wait_of(&fault).unwrap_or_default().max(PAUSE)).await?;
            return Ok(Vec::new());
        }
    };
    let own = (held, credentials.as_str());
    let orders: Vec<_> = due.iter().map(|of| order::carry_out(state, authority, own, of)).collect();
    let mut orders = stream::iter(orders).buffer_unordered(AT_ONCE);
    let (mut ended, mut limited, mut stop) = (Vec::new(), 0_usize, None);
    while let Some(one) = orders.next().await {
        match &one {
            Ok(Ended::Failed(fault)) if fault.kind == FaultKind::Limited => {
                limited += 1;
                stop = wait_of(fault).filter(|_| limited >= LIMITED).map(Stop::Paused);
            }
            Ok(Ended::Failed(Fault { kind: FaultKind::Clock, .. })) => stop = Some(Stop::Paused(PAUSE)),
            Ok(Ended::Failed(Fault { kind: FaultKind::NoAccount, .. })) => stop = Some(Stop::NoAccount),
            Ok(Ended::Lost) => {}
            Ok(Ended::Issued | Ended::Failed(_)) => limited = 0,
            // It is tried again with the next look.
            Err(error) => tracing::warn!(%error, "an order of a certificate failed"),
        }
        ended.extend(one.ok());
        if stop.is_some() {
            break;
        }
    }
    // Those under way may be in a transaction, for which the one below would wait.
    drop(orders);
    match stop {
        None => {}
        Some(Stop::Paused(time)) => pause(state, held, time).await?,
        Some(Stop::NoAccount) => {
            tracing::error!(
                "the certificate authority no longer accepts the account of this service: another one is made"
            );
            store_account(state, held, StoredAccount { replaced_at, sealed: None }.lost()).await?;
            pause(state, held, PAUSE).await?;
        }
    }
    Ok(ended)
}

/// Why no more orders are made in a look.
enum Stop {
    /// The authority finds them too many, or the clock is wrong: nobody is asked for so long.
    Paused(Duration),
    /// The authority does not know the account of this service, or accepts it no more.
    NoAccount,
}

/// The credentials of this service, which are made when there are none, and when they last took the place of others; the inner
/// error: the authority makes none, or was asked for one within a day.
async fn credentials(
    state: &CertificateState,
    authority: &Authority,
    held: &Held,
) -> Result<Result<(String, Option<UnixMillis>), Fault>, ServiceError> {
    let stored = held.credentials.as_deref().map(StoredAccount::read);
    if let Some(StoredAccount { replaced_at, sealed: Some(sealed) }) = stored {
        if let Some(credentials) = state.open(authority.directory(), sealed) {
            return Ok(Ok((credentials, replaced_at)));
        }
        // Orders of the account before are lost, and made again.
        tracing::error!(
            "the account at the certificate authority was changed and does not decrypt: another one is made"
        );
    }
    let now = clock::now(&mut state.db.read().await?).await?;
    if let Some(wait_ms) = stored.and_then(|stored| stored.wait_ms(now)) {
        let text = "another one was made within a day, and is not accepted any more".to_owned();
        return Ok(Err(Fault { kind: FaultKind::NoAccount, text, wait_ms: Some(wait_ms) }));
    }
    let credentials = match authority.register().await {
        Ok(credentials) => credentials,
        Err(fault) => return Ok(Err(fault)),
    };
    let sealed = state.seal(authority.directory(), &credentials)?;
    let replaced_at = stored.map(|_| now);
    store_account(state, held, StoredAccount { replaced_at, sealed: Some(&sealed) }).await?;
    Ok(Ok((credentials, replaced_at)))
}

async fn store_account(
    state: &CertificateState,
    held: &Held,
    account: StoredAccount<'_>,
) -> Result<(), StoreError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    authorities::set_credentials(&mut tx, held, &account.text()).await?;
    tx.commit().await
}

/// Leaves the authority alone, for a bounded time.
async fn pause(state: &CertificateState, held: &Held, time: Duration) -> Result<(), StoreError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    authorities::pause(&mut tx, held, time).await?;
    tx.commit().await
}

/// How long the authority wants to be left alone.
fn wait_of(fault: &Fault) -> Option<Duration> {
    fault.wait_ms.and_then(|wait| u64::try_from(wait).ok()).map(Duration::from_millis)
}
