//! What tagged display pieces teach: where such items are, so that others that look like them there are named.

use shared::id::{AccountId, ThngId};

use super::{history, observe::ScanSources};
use crate::{
    domain::{
        assessment::{
            explain::{Displays, MANY_SESSIONS},
            profile::Profile,
            rules::is_display,
            spread::Home,
        },
        resource::Thng,
    },
    error::ServiceError,
    service::AssessmentState,
    store::{Conn, Ctx, Tx, display_places, documents},
};

/// Fewest sessions that say where a display piece is: its tag says already what it is.
const FEWEST: usize = 3;

/// Most display pieces of a region that are counted.
const MOST: u32 = 100;

/// Display pieces that are read in one step, and steps of one run.
const STEP: u32 = 500;
const STEPS: usize = 4;

/// Keeps where a Thng is mostly seen while it is tagged as a display piece, and forgets it otherwise. Where its scans
/// do not say yet, [`learn_unknown`] looks again.
pub(crate) async fn learn(
    sources: ScanSources<'_>,
    tx: &mut Tx,
    account: AccountId,
    thng: &Thng,
) -> Result<(), ServiceError> {
    let tags = thng.details.common.tags.as_deref().unwrap_or_default();
    if !is_display(tags) {
        return Ok(display_places::delete(tx, account, thng.id).await?);
    }
    let region = region(&history::load(sources, tx, account, thng.id).await?);
    Ok(display_places::put(tx, account, thng.id, &region.unwrap_or_default()).await?)
}

/// Where a display piece is, if its sessions say so.
fn region(profile: &Profile) -> Option<String> {
    let home = Home::of_profile(profile)?;
    (home.sessions >= FEWEST && home.share() > 0.5).then_some(home.region)
}

/// Looks again for the regions of the next display pieces after a Thng whose region is not known yet; returns how many
/// were found, and moves `after`, to the beginning once all were looked at.
///
/// # Errors
/// The database failed; what was found stays.
pub async fn learn_unknown(state: &AssessmentState, after: &mut String) -> Result<u64, ServiceError> {
    let (sources, mut learned) = (state.sources(), 0);
    for _ in 0..STEPS {
        let mut conn = state.db.read().await?;
        let found = display_places::list_unknown(&mut conn, after, STEP).await?;
        *after = found.last().map(|(_, last)| last.to_string()).unwrap_or_default();
        if found.is_empty() {
            break;
        }
        let mut known = Vec::new();
        for (account, thng) in found {
            if region(&history::load(sources, &mut conn, account, thng).await?).is_some() {
                known.push((account, thng));
            }
        }
        drop(conn);
        for (account, thng) in known {
            let mut tx = state.db.begin(&Ctx::default()).await?;
            let found: Option<Thng> = documents::find_locked(&mut tx, account, thng).await?;
            if let Some(thng) = found {
                learn(sources, &mut tx, account, &thng).await?;
                learned += 1;
            }
            tx.commit().await?;
        }
    }
    Ok(learned)
}

/// Display pieces that are mostly seen where a Thng is; nothing of one with few sessions, which cannot look like one.
pub(super) async fn nearby(
    conn: &mut Conn,
    account: AccountId,
    thng: ThngId,
    profile: &Profile,
) -> Result<Option<Displays>, ServiceError> {
    let Some(home) = Home::of_profile(profile).filter(|_| profile.len() >= MANY_SESSIONS) else {
        return Ok(None);
    };
    let count = display_places::count(conn, account, &home.region, thng, MOST).await?;
    Ok((count > 0).then_some(Displays { region: home.region, count }))
}
